/**
 * `npm run world -- [--minutes 10] [--scenario NAME]`: simulated fleets in virtual time, new seeds for so long; a failing seed is
 * shrunk and printed as one line. `--seed N --scenario NAME [--keep 1,2,3]` repeats one, with its event log.
 */
import { parseArgs } from "node:util";
import { runTool } from "./run-command.mjs";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "1" },
    seed: { type: "string" },
    scenario: { type: "string" },
    keep: { type: "string" },
  },
});
/** @param {string} why */
function misuse(why) {
  process.stderr.write(`${why}\n`);
  process.exit(2);
}
const minutes = Number(values.minutes);
if (!(minutes > 0 && minutes <= 600))
  misuse(`--minutes: expected a number up to 600, got ${JSON.stringify(values.minutes)}`);
if (values.seed !== undefined && !/^\d{1,15}$/.test(values.seed))
  misuse(`--seed: expected a whole number, got ${JSON.stringify(values.seed)}`);
if (values.keep !== undefined && !/^\d+(,\d+)*$/.test(values.keep))
  misuse(`--keep: expected numbers of steps such as 3,17,20, got ${JSON.stringify(values.keep)}`);
process.env.WORLD_MS = String(Math.round(minutes * 60_000));
if (values.seed !== undefined) process.env.WORLD_SEED = values.seed;
if (values.scenario !== undefined) process.env.WORLD_SCENARIO = values.scenario;
if (values.keep !== undefined) process.env.WORLD_KEEP = values.keep;
const args = ["run", "test/world/world.test.ts", "--silent=false", "--disable-console-intercept"];
const { code } = await runTool({ package: "vitest", bin: "vitest.mjs", args });
process.exitCode = code;
