/**
 * Builds packages/dashboard: checks its types, then bundles it into the service's package, which serves it.
 * The server must be built before, for its types are read from its dist.
 */
import { join } from "node:path";
import { refreshFolder } from "./refresh-folder.mjs";
import { root, runTool } from "./run-command.mjs";

const cwd = join(root, "packages", "dashboard");

process.exitCode = await refreshFolder(join(root, "packages", "server", "console"), async (into) => {
  const bundling = ["build", "--logLevel", "warn", "--emptyOutDir", "--outDir", into];
  const [types, bundle] = await Promise.all([
    runTool({ package: "typescript", bin: "bin/tsc", args: ["-p", "tsconfig.json"], cwd, capture: true }),
    runTool({ package: "vite", bin: "bin/vite.js", args: bundling, cwd, capture: true }),
  ]);
  process.stdout.write(types.output + bundle.output);
  return types.code || bundle.code;
});
