/**
 * `npm test`: everything that must hold, against real servers. Arguments go to vitest: `npm test -- rolling`.
 * In order: system components, build and lint, types, vitest. Each of build, lint and types counts as one test.
 * The last line is `N passed, N failed` (and `, N skipped`); nothing is skipped in silence, and on CI nothing at all.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { root, run, runTool, seconds } from "./run-command.mjs";
import { describeMissing, ensureComponents } from "./system-components.mjs";
import { trackedFiles } from "./tracked-files.mjs";
import { countVitest } from "./vitest-report.mjs";

const vitestArgs = process.argv.slice(2);
const onCi = process.env.CI === "true" || process.env.CI === "1";

/** What vitest's own report also has, so that the sum is one loop. @typedef {import("./vitest-report.mjs").Tally} Tally */

async function componentTally() {
  const missing = (await ensureComponents()).map(describeMissing);
  return tally(onCi ? { failures: missing } : { skipReasons: missing });
}

/**
 * @param {string} name
 * @param {() => ReturnType<typeof run>} start
 */
async function step(name, start) {
  const { code, output, tookMs } = await start();
  console.log(`${code === 0 ? "✓" : "✗"} ${name} (${seconds(tookMs)})`);
  if (code !== 0) console.log(output.trimEnd());
  return code === 0 ? tally({ passed: 1 }) : tally({ failures: [name] });
}

const build = () => run({ command: process.execPath, args: ["scripts/build.mjs"], capture: true });
async function lint() {
  const args = [
    "check",
    "--diagnostic-level=warn",
    "--files-ignore-unknown=true",
    "--no-errors-on-unmatched",
    ...((await trackedFiles(root)) ?? ["."]),
  ];
  return await runTool({ package: "@biomejs/biome", bin: "bin/biome", args, capture: true });
}
/** Each checker looks at what several files need on its own: more of them than cores cost time. Four are the default. */
const checkers = String(Math.min(4, availableParallelism()));
const types = () => {
  const args = ["-p", "tsconfig.json", "--checkers", checkers];
  return runTool({ package: "typescript", bin: "bin/tsc", args, capture: true });
};

async function vitest() {
  const folder = await mkdtemp(join(tmpdir(), "sluice-test-"));
  try {
    const reportFile = join(folder, "vitest.json");
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`];
    const { code } = await runTool({
      package: "vitest",
      bin: "vitest.mjs",
      args: ["run", ...reporters, ...vitestArgs],
    });
    return await countVitest({ reportFile, code, filteredByName: vitestArgs.some(isNameFilter), onCi });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param {string} argument */
function isNameFilter(argument) {
  return argument === "-t" || argument.startsWith("--testNamePattern");
}

/**
 * @param {Partial<Tally>} part
 * @returns {Tally}
 */
function tally(part) {
  return { passed: 0, skipped: 0, failures: [], skipReasons: [], ...part };
}

/** @param {Tally[]} tallies */
function report(tallies) {
  const failures = tallies.flatMap((one) => one.failures);
  const skipReasons = tallies.flatMap((one) => one.skipReasons);
  const passed = tallies.reduce((sum, one) => sum + one.passed, 0);
  const skipped = tallies.reduce((sum, one) => sum + one.skipped, 0);

  console.log();
  if (failures.length > 0) console.log(`Failed:\n${failures.map((failure) => `  ✗ ${failure}`).join("\n")}`);
  if (skipReasons.length > 0) console.log(`Skipped:\n${skipReasons.map((reason) => `  - ${reason}`).join("\n")}`);
  console.log(`${passed} passed, ${failures.length} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
  process.exitCode = failures.length > 0 || passed === 0 ? 1 : 0;
}

const tallies = [await componentTally()];
// A build stands still for parts of its time; types need what it emits, and lint does not.
tallies.push(...(await Promise.all([step("build", build), step("lint", lint)])));
tallies.push(await step("types", types), await vitest());
report(tallies);
