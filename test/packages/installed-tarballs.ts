/**
 * Both packages as a user gets them: packed by npm, installed from the tarballs into an empty folder whose name has a space.
 * In: the built packages. Out: the folder, the tarballs, and all that npm printed.
 */
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../../scripts/run-command.mjs";
import { makeTempFolder } from "../harness/leash.js";

export interface Installed {
  readonly folder: string;
  readonly tarballs: { readonly sluice: string; readonly server: string };
  readonly npmOutput: string;
}

export const execute = promisify(execFile);

export async function packPackages(into: string): Promise<Installed["tarballs"]> {
  const packages = ["sluice", "server"].map((name) => join(root, "packages", name));
  const { stdout } = await execute("npm", ["pack", ...packages, "--silent", "--ignore-scripts"], { cwd: into });
  const [sluice, server] = stdout.trim().split("\n");
  return { sluice: join(into, sluice!), server: join(into, server!) };
}

export async function installTarballs(): Promise<Installed> {
  const parent = makeTempFolder("packages");
  const tarballs = await packPackages(parent);
  const folder = join(parent, "my project");
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{ "private": true }');
  const quietly = ["--prefer-offline", "--no-audit", "--no-fund"];
  const { stdout, stderr } = await execute("npm", ["install", ...quietly, tarballs.sluice, tarballs.server], {
    cwd: folder,
    // As in an image: the packages must not need what a developer has.
    env: { ...process.env, NODE_ENV: "production" },
  });
  // For users other than root, who run what root has installed.
  for (const path of [parent, folder]) chmodSync(path, 0o755);
  return { folder, tarballs, npmOutput: stdout + stderr };
}
