/**
 * Builds packages/dashboard: checks its types, then bundles it to dist. The server must be built before, for its types are read from its dist.
 */
import { join } from "node:path";
import { root, runTool } from "./run-command.mjs";

const cwd = join(root, "packages", "dashboard");
const [types, bundle] = await Promise.all([
  runTool({ package: "typescript", bin: "bin/tsc", args: ["-p", "tsconfig.json"], cwd, capture: true }),
  runTool({ package: "vite", bin: "bin/vite.js", args: ["build", "--logLevel", "warn"], cwd, capture: true }),
]);
process.stdout.write(types.output + bundle.output);
process.exitCode = types.code || bundle.code;
