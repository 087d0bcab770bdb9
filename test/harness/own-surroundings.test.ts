/** What a developer's shell and checkout hold must not reach a test, nor the processes that it starts. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { leaveFolder, restoreEnvironment } from "./first-environment.js";
import { leashProcess, makeTempFolder, takeDown } from "./leash.js";
import { SECONDS } from "./longest-first.js";
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

test("what a test file sets in the environment, starts or writes is gone before the next file of its process", async () => {
  const { PATH, VITEST_POOL_ID } = process.env;
  process.env.SLUICE_LEFT_BEHIND = "1";
  process.env.PATH = "/nowhere";
  restoreEnvironment();
  expect(process.env).toMatchObject({ PATH, VITEST_POOL_ID });
  expect(process.env.SLUICE_LEFT_BEHIND).toBeUndefined();

  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  leashProcess(child);
  const folder = makeTempFolder("left-behind");
  leaveFolder();
  takeDown();
  expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
  expect(existsSync(folder)).toBe(false);
});

test("the order of test files names files that there are", () => {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  expect(Object.keys(SECONDS).filter((file) => !existsSync(join(root, file)))).toEqual([]);
});
