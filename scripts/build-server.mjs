/**
 * Builds packages/server: compiles the sources to dist. The library must be built before, for its types are read from its dist.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { root, runTool } from "./run-command.mjs";

const server = join(root, "packages", "server");

// Start clean: a file that was renamed would otherwise live on in the package.
await rm(join(server, "dist"), { recursive: true, force: true });
const { code, output } = await runTool({
  package: "typescript",
  bin: "bin/tsc",
  args: ["-p", "tsconfig.json"],
  cwd: server,
  capture: true,
});
process.stdout.write(output);
process.exitCode = code;
