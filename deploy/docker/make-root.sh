#!/bin/sh
# The root file system of the image: make-root.sh NODE APP ROOT
# In: node's binary; a folder in which npm has installed sluice-server. Out, in ROOT: node without its symbol table, the C
# and C++ libraries that it loads, the package without files that nothing reads at run time, one user. No shell, no npm.
set -eu
node=$1 app=$2 root=$3

mkdir -p "$root/usr/local/bin" "$root/app" "$root/data" "$root/etc" "$root/tmp" "$root/proc" "$root/dev"
cp "$node" "$root/usr/local/bin/node"
# 18 of 127 MB. Native add-ons link to the dynamic symbols, which stay.
strip "$root/usr/local/bin/node"

cp -RL "$app/node_modules" "$root/app/"
find "$root/app" -type f \( -name '*.map' -o -name '*.ts' -o -name '*.cts' -o -name '*.mts' -o -name '*.md' -o -name '*.markdown' \) \
  ! -name 'THIRD-PARTY-NOTICES.md' -delete
# Folders of dependencies that nothing loads: their own tests and examples, builds for browsers, and the second of two builds:
# the CommonJS one is required here. sluice-server itself has none of these.
for package in "$root"/app/node_modules/* "$root"/app/node_modules/@*/*; do
  case $package in */sluice-server) continue ;; esac
  for unread in test tests e2e example examples benchmark .github; do rm -rf "$package/$unread"; done
done
rm -rf "$root/app/node_modules/protobufjs/dist" "$root/app/node_modules/yaml/browser" "$root/app/node_modules/@types"
find "$root/app/node_modules" -type d -path '*/dist/esm' | while read -r esm; do
  if [ -d "${esm%esm}commonjs" ]; then rm -rf "$esm"; fi
done
# npm installs libsql for both C libraries; here is glibc.
rm -rf "$root"/app/node_modules/@libsql/linux-*-musl "$root/app/node_modules/.bin"

# The loader by its own path, libraries of node and of native add-ons where it looks for them.
for library in $(find "$root/usr" "$root/app" -type f \( -name node -o -name '*.node' \) -exec ldd {} \; | awk '{ for (i = 1; i <= NF; i++) if ($i ~ "^/") print $i }' | sort -u); do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done

echo 'sluice:x:65532:65532::/data:/nonexistent' > "$root/etc/passwd"
echo 'sluice:x:65532:' > "$root/etc/group"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
chmod 1777 "$root/tmp"
# Rules, the admin token and snapshots. All else may be read-only.
if [ "$(id -u)" = 0 ]; then chown 65532:65532 "$root/data"; fi
