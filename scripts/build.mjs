/**
 * Builds every workspace that has a `build` script, in the order of "workspaces" in package.json: what is imported comes first.
 * Stops at the first that fails, for the next ones need it.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { root, run, seconds } from "./run-command.mjs";

/** @param {string} folder */
async function readManifest(folder) {
  return JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
}

for (const workspace of (await readManifest(root)).workspaces) {
  const folder = join(root, workspace);
  const { name, scripts } = await readManifest(folder);
  if (scripts?.build === undefined) continue;

  const { code, tookMs } = await run({ command: "npm", args: ["run", "build", "--silent"], cwd: folder });
  console.log(code === 0 ? `built ${name} in ${seconds(tookMs)}` : `${name} does not build`);
  if (code !== 0) {
    process.exitCode = code;
    break;
  }
}
