/** What a developer's shell and checkout hold must not reach a test, nor the processes that it starts. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { foreignVariables } from "./own-surroundings.js";

test("a process that a test starts sees no setting of Sluice, no colour switch and no credentials of its surroundings", () => {
  const script = "console.log(JSON.stringify(Object.keys(process.env)))";
  const seen = JSON.parse(execFileSync(process.execPath, ["-e", script], { encoding: "utf8" })) as string[];
  expect(foreignVariables(seen)).toEqual([]);
});

test("a variable counts as foreign by its name; what the tests are told is not", () => {
  const names = ["SLUICE_PORT", "FORCE_COLOR", "PGPASSWORD", "OTEL_SERVICE_NAME", "https_proxy", "NODE_OPTIONS"];
  expect(foreignVariables([...names, "SLUICE_TEST_SEED", "SLUICE_PEER_ER", "PATH", "HOME"])).toEqual(names);
});

test("a test runs in an empty folder of its own", () => {
  expect(process.cwd().startsWith(tmpdir())).toBe(true);
  expect(readdirSync(process.cwd())).toEqual([]);
});
