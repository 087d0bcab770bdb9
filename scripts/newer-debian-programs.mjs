/**
 * Servers from a newer Debian than this machine's, for `npm run matrix`: packages are downloaded and unpacked, never installed, and run with
 * the C library and loader of their own release. apt checks signatures, as it does for the machine's own packages.
 * In: a server's name. Out: a script under .cache/programs that starts it like `redis-server`.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./run-command.mjs";

const RELEASE = "trixie";
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
/** What both servers need at run time. */
const libraries = [
  "libc6",
  "libatomic1",
  "libgcc-s1",
  "libstdc++6",
  "libjemalloc2",
  "liblzf1",
  "libssl3t64",
  "libsystemd0",
  "libcap2",
  "libzstd1",
  "zlib1g",
];

/** The server is the same file as the checker; it looks at the name by which it was called. */
const servers = {
  redis: { debianPackage: "redis-tools", file: "usr/bin/redis-check-rdb", name: "redis-server" },
  valkey: { debianPackage: "valkey-tools", file: "usr/bin/valkey-check-rdb", name: "valkey-server" },
};

/** @typedef {keyof typeof servers} DebianServer */

/**
 * @param {DebianServer} id
 * @returns {Promise<{ file: string } | { why: string }>}
 */
export async function newerDebianServer(id) {
  const cache = join(root, ".cache", "programs");
  const folder = join(cache, `${id}-${RELEASE}-${process.arch}`);
  const start = join(folder, servers[id].name);
  if (existsSync(start)) return { file: start };

  mkdirSync(cache, { recursive: true });
  const staging = mkdtempSync(join(cache, ".staging-"));
  try {
    const why = await unpack(staging, [servers[id].debianPackage, ...libraries]);
    if (why !== undefined) return { why };
    const files = readdirSync(staging, { recursive: true, encoding: "utf8" });
    const loader = files.find((file) => /(^|\/)ld-linux[^/]*\.so\.\d+$/.test(file));
    if (loader === undefined) return { why: "the packages hold no loader" };
    writeFileSync(join(staging, servers[id].name), startScript({ ...servers[id], folder, loader }));
    chmodSync(join(staging, servers[id].name), 0o755);
    renameSync(staging, folder);
    return { file: start };
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** @param {{ folder: string, loader: string, file: string, name: string }} server */
function startScript({ folder, loader, file, name }) {
  const architecture = process.arch === "arm64" ? "aarch64" : "x86_64";
  const paths = `"$here/usr/lib/${architecture}-linux-gnu"`;
  return `#!/bin/sh
here="${folder}"
exec "$here/${loader}" --argv0 ${name} --library-path ${paths} "$here/${file}" "$@"
`;
}

/**
 * @param {string} folder
 * @param {readonly string[]} packages
 * @returns {Promise<string | undefined>} why it failed
 */
async function unpack(folder, packages) {
  const mirror = await debianMirror();
  if (mirror === undefined) return "this machine has no apt with a Debian mirror";
  const state = join(folder, ".apt");
  for (const part of ["state/lists/partial", "cache/archives/partial"])
    mkdirSync(join(state, part), { recursive: true });
  writeFileSync(join(state, "sources.list"), `deb [signed-by=${KEYRING}] ${mirror} ${RELEASE} main\n`);
  const own = [
    ["Dir::Etc::sourcelist", join(state, "sources.list")],
    ["Dir::Etc::sourceparts", "-"],
    ["Dir::State", join(state, "state")],
    ["Dir::State::status", "/dev/null"],
    ["Dir::Cache", join(state, "cache")],
    ["APT::Sandbox::User", "root"],
    ["Acquire::Languages", "none"],
  ].flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  for (const command of [["update"], ["download", ...packages]]) {
    const { code, output } = await run({ command: "apt-get", args: [...own, ...command], cwd: folder, capture: true });
    if (code !== 0) return output.trim().split("\n").at(-1);
  }
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".deb"))) {
    const { code, output } = await run({ command: "dpkg", args: ["-x", file, "."], cwd: folder, capture: true });
    if (code !== 0) return output;
    rmSync(join(folder, file));
  }
  rmSync(state, { recursive: true });
  return undefined;
}

/** Where this machine gets its own packages from: another mirror might not be reachable. */
async function debianMirror() {
  const { code, output } = await run({
    command: "apt-get",
    args: ["indextargets", "--format", "$(SITE)", "Created-By: Packages"],
    capture: true,
  });
  const sites = code === 0 ? output.split("\n") : [];
  return sites.find((site) => /^https?:/.test(site) && !site.includes("security"));
}
