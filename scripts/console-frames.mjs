/** `npm run frames`: prints the console's longest frames with 5 000 rules and 100 000 keys. Build first; nothing else should run beside it. */
import { runTool } from "./run-command.mjs";

const { code } = await runTool({
  package: "vitest",
  bin: "vitest.mjs",
  args: ["run", "test/dashboard/frames.test.ts"],
});
process.exitCode = code;
