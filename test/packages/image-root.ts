/**
 * The image without a container engine: the root file system that the Dockerfile's last stage copies, made by the same script, and programs
 * run in it as the image runs them. In a mount namespace of their own the root is read-only and only /data can be written.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "../../scripts/run-command.mjs";
import { components } from "../../scripts/system-components.mjs";
import { leashProcess, makeTempFolder } from "../harness/leash.js";

export async function makeImageRoot(app: string): Promise<string> {
  const folder = join(makeTempFolder("image"), "root");
  const script = join(root, "deploy/docker/make-root.sh");
  const args = [script, components.node24.find()!, app, folder];
  const { code, output } = await run({ command: "sh", args, capture: true });
  if (code !== 0) throw new Error(output);
  return folder;
}

export function bytesIn(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

/** `$1` is the root; what follows is run in it. The two mounts end with the namespace. */
const READ_ONLY = `mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" \
&& mount -t tmpfs -o uid=65532,gid=65532,mode=700 tmpfs "$1/data" && cd "$1/data" \
&& folder=$1 && shift && exec chroot --userspec=65532:65532 "$folder" /usr/local/bin/node "$@"`;

export function runInImage(folder: string, args: readonly string[]): ChildProcess {
  const child = spawn("unshare", ["--mount", "sh", "-c", READ_ONLY, "sh", folder, ...args], {
    env: { PATH: `/usr/local/bin:${process.env.PATH}`, NODE_ENV: "production", SLUICE_DATA_FOLDER: "/data" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  leashProcess(child);
  return child;
}
