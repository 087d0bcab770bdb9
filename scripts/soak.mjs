/**
 * `npm run soak -- --minutes 10 [--seed N]`: the soak of test/faults for so long, up to two hours. Its table must end in three zeros.
 */
import { parseArgs } from "node:util";
import { runTool } from "./run-command.mjs";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" }, seed: { type: "string" } } });
const minutes = Number(values.minutes);
if (!(minutes > 0 && minutes <= 120)) {
  process.stderr.write(`--minutes: expected a number up to 120, got ${JSON.stringify(values.minutes)}\n`);
  process.exit(2);
}
process.env.SOAK_MS = String(Math.round(minutes * 60_000));
if (values.seed !== undefined) process.env.SOAK_SEED = values.seed;
const { code } = await runTool({ package: "vitest", bin: "vitest.mjs", args: ["run", "test/faults/soak.test.ts"] });
process.exitCode = code;
