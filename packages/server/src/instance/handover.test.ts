/** Notices of other processes as they may occur: of a process that is gone, of another program, or unreadable. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isAlive, readHolder, writeHolder } from "./folder-holder.js";
import { putDrainNotice, readDrainNotice, readSuccessorNotice, removeDrainNotice } from "./handover.js";

let folder: string;
let draining: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-handover-"));
  draining = join(folder, "draining");
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** The parent outlives this test. */
const other = { pid: process.ppid, host: hostname() };
const put = (notice: object): void => writeFileSync(draining, JSON.stringify({ ...other, ports: [1], ...notice }));

test("a notice of another process is found until it ends", () => {
  put({ untilMs: Date.now() + 60_000 });
  expect(readDrainNotice(folder)?.ports).toEqual([1]);
  put({ untilMs: Date.now() - 1 });
  expect(readDrainNotice(folder)).toBeUndefined();
});

test("changing the clock while waiting for a notice does not change the wait", () => {
  const nowMs = Date.now();
  const beganMonotonicMs = performance.now();
  put({ untilMs: nowMs + 60_000 });
  expect(readDrainNotice(folder)).toBeDefined();
  const wall = vi.spyOn(Date, "now").mockReturnValue(nowMs + 3_600_000);
  expect(readDrainNotice(folder)).toBeDefined();
  wall.mockReturnValue(nowMs - 3_600_000);
  vi.spyOn(performance, "now").mockReturnValue(beganMonotonicMs + 70_000);
  expect(readDrainNotice(folder)).toBeUndefined();
});

test.each([
  ["0", { pid: 0 }],
  ["below 0", { pid: -1 }],
  ["of a process that started later", { started: "1" }],
  ["in words", { pid: "1" }],
])("a process with a number %s is none that lives", (_, more) => {
  put({ untilMs: Date.now() + 60_000, ...more });
  expect(readDrainNotice(folder)).toBeUndefined();
});

test("a process is identified by its start time, where available", () => {
  writeHolder(join(folder, "lock"));
  expect(isAlive(readHolder(join(folder, "lock"))!)).toBe(true);
});

test("a pipe does not block, and a huge file is not read", () => {
  execFileSync("mkfifo", [draining, join(folder, "successor")]);
  expect(readDrainNotice(folder)).toBeUndefined();
  expect(readSuccessorNotice(folder)).toBeUndefined();
  rmSync(draining);
  put({ untilMs: Date.now() + 60_000 });
  truncateSync(draining, 2 ** 31);
  expect(readDrainNotice(folder)).toBeUndefined();
});

test("a notice replaces a symlink in its place, and leaves the target alone", () => {
  const victim = join(folder, "victim");
  writeFileSync(victim, "precious");
  symlinkSync(victim, draining);
  putDrainNotice(folder, { ports: [1], untilMs: Date.now() + 60_000 });
  expect(readFileSync(victim, "utf8")).toBe("precious");
  expect(readHolder(draining)?.pid).toBe(process.pid);
  removeDrainNotice(folder);
  expect(readHolder(draining)).toBeUndefined();
  expect(readFileSync(victim, "utf8")).toBe("precious");
});
