/**
 * Reads vitest's JSON report into a tally.
 * In: the report and vitest's exit code. Out: what passed, failed and was skipped, each failure by name.
 * A run that ended badly is never counted as clean: a crash leaves no report, or a report without a failed test.
 */
import { readFile } from "node:fs/promises";
import { relative } from "node:path";
import { root } from "./run-command.mjs";

/**
 * @typedef {object} Tally
 * @property {number} passed
 * @property {number} skipped
 * @property {readonly string[]} failures
 * @property {readonly string[]} skipReasons
 *
 * @typedef {object} FileReport
 * @property {string} name
 * @property {"passed" | "failed"} status
 * @property {string} message
 * @property {readonly { status: string, fullName: string }[]} assertionResults
 */

/**
 * @param {{ reportFile: string, code: number, filteredByName: boolean, onCi: boolean }} options
 * @returns {Promise<Tally>}
 */
export async function countVitest({ reportFile, code, filteredByName, onCi }) {
  const files = await readReport(reportFile);
  const failures = files.flatMap(failuresOf);
  const passed = files.flatMap((file) => file.assertionResults).filter((test) => test.status === "passed").length;
  // With a filter by name, vitest reports every other test as skipped. Nobody asked for those.
  const skipped = filteredByName ? [] : files.flatMap(skippedOf);

  if (code !== 0 && failures.length === 0) {
    failures.push(
      `vitest ended with status ${code} and no failed test: no test found, a crash or an unhandled error (see above)`,
    );
  }
  if (onCi) {
    failures.push(...skipped.map((test) => `${test}: skipped, which CI does not accept`));
    return { passed, skipped: 0, failures, skipReasons: [] };
  }
  return { passed, skipped: skipped.length, failures, skipReasons: filteredByName ? [] : files.flatMap(skipsByFile) };
}

/**
 * @param {string} reportFile
 * @returns {Promise<FileReport[]>}
 */
async function readReport(reportFile) {
  try {
    return JSON.parse(await readFile(reportFile, "utf8")).testResults;
  } catch {
    // A crash leaves no report; the exit code then speaks.
    return [];
  }
}

/** @param {FileReport} file */
function failuresOf(file) {
  const path = relative(root, file.name);
  const failed = file.assertionResults.filter((test) => test.status === "failed");
  // A file that does not load, or a hook that fails, fails the file and no test of it.
  if (failed.length === 0 && file.status === "failed") return [`${path}: ${file.message.split("\n")[0]}`];
  return failed.map((test) => `${path}: ${test.fullName}`);
}

/** @param {FileReport} file */
function skippedOf(file) {
  const path = relative(root, file.name);
  // What did not run because its file failed is part of that failure.
  if (file.status === "failed" && file.assertionResults.every((test) => test.status !== "failed")) return [];
  return file.assertionResults
    .filter((test) => test.status !== "passed" && test.status !== "failed")
    .map((test) => `${path}: ${test.fullName}`);
}

/** @param {FileReport} file */
function skipsByFile(file) {
  const count = skippedOf(file).length;
  return count === 0 ? [] : [`${relative(root, file.name)}: ${count} of ${file.assertionResults.length} tests`];
}
