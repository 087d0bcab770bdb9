/** `npm run screenshots`: writes the images of docs/images from the dashboard as it is, with real traffic on a real Redis Cluster. Build first. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { root, runTool } from "./run-command.mjs";

await mkdir(join(root, "docs", "images"), { recursive: true });
const { code } = await runTool({
  package: "vitest",
  bin: "vitest.mjs",
  args: ["run", "test/dashboard/pages.test.ts"],
  env: { SLUICE_SCREENSHOTS: "1" },
});
process.exitCode = code;
