/**
 * Builds packages/server: compiles the sources to dist. The library must be built before, for its types are read from its dist.
 */
import { join } from "node:path";
import { refreshFolder } from "./refresh-folder.mjs";
import { root, runTool } from "./run-command.mjs";

const server = join(root, "packages", "server");

process.exitCode = await refreshFolder(join(server, "dist"), async (dist) => {
  const args = ["-p", "tsconfig.json", "--outDir", dist];
  const { code, output } = await runTool({
    package: "typescript",
    bin: "bin/tsc",
    args,
    cwd: server,
    capture: true,
  });
  process.stdout.write(output);
  return code;
});
