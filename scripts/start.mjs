/**
 * `npm start`: builds what is needed, then serves. Arguments go to `sluice serve`: `npm start -- --port 9000`.
 * A build is needed where a package's output is missing or older than its newest source.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { endWithParent } from "../packages/server/bin/end-with-parent.js";
import { root, run } from "./run-command.mjs";

/** @param {string} folder newest change of a file in it, in ms; 0 if it is not there */
function newestMs(folder) {
  try {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    return Math.max(0, ...files.map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs));
  } catch {
    return 0;
  }
}

const outputs = { sluice: "sluice/dist", server: "server/dist", dashboard: "server/console" };
const isStale = Object.entries(outputs).some(([name, output]) => {
  const packages = join(root, "packages");
  return newestMs(join(packages, output)) < newestMs(join(packages, name, "src"));
});

if (isStale) {
  const { code } = await run({ command: process.execPath, args: [join(root, "scripts", "build.mjs")] });
  if (code !== 0) process.exit(code);
}
// In this process, so that signals and the terminal reach the service itself.
const program = pathToFileURL(join(root, "packages", "server", "bundle", "main.js")).href;
const { main } = await import(program);
endWithParent();
await main([process.argv[0], "sluice", "serve", ...process.argv.slice(2)]);
