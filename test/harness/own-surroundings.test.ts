/** What a developer's shell and checkout hold must not reach a test, nor the processes that it starts. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { combined, MARKERS, renamed } from "../../packages/server/src/settings/reference-environment.js";
import { trackedFiles } from "../../scripts/tracked-files.mjs";
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

test("every variable of envoyproxy/ratelimit that the service understands is foreign", () => {
  const names = Object.keys({ ...renamed, ...combined });
  expect(names).toEqual(
    expect.arrayContaining(["CONFIG_TYPE", "RUNTIME_ROOT", "REDIS_URL", "PORT", "HOST", "LOG_LEVEL"]),
  );
  expect(foreignVariables(names)).toEqual(names);
  expect(foreignVariables(MARKERS)).toEqual(MARKERS);
});

test("what a checkout holds beside the tracked files is not linted, nor what was deleted from it", async () => {
  const git = (...args: string[]) => execFileSync("git", ["-c", "init.defaultBranch=main", ...args], { cwd: folder });
  const folder = makeTempFolder("checkout");
  git("init", "--quiet");
  for (const name of ["kept.ts", "deleted.ts", "sketch.ts"]) writeFileSync(join(folder, name), "");
  git("add", "kept.ts", "deleted.ts");
  rmSync(join(folder, "deleted.ts"));
  expect(await trackedFiles(folder)).toEqual(["kept.ts"]);
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
