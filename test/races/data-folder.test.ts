/** Processes that start in one data folder in the same instant: one holds it, whatever the folder was left with. */
import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { leashProcess, makeTempFolder } from "../harness/leash.js";

const RACERS = 8;
const ROUNDS = 15;
const CRASHES = 3;
/** Until every racer has its message. */
const HEAD_START_MS = 20;
/** On a busy machine it may name the holder before, or nobody: a holder writes its name behind the lock. */
const IN_USE = /is in use by (another process|process \d+( of host "another-container")?), which counts/;
const racer = fileURLToPath(new URL("folder-racer.mjs", import.meta.url));

let racers: ChildProcess[] = [];
beforeAll(async () => {
  racers = await Promise.all(Array.from({ length: RACERS }, startRacer));
});
afterAll(() => {
  for (const child of racers) child.kill("SIGKILL");
});

async function startRacer(): Promise<ChildProcess> {
  const child = fork(racer, { execArgv: [] });
  leashProcess(child);
  expect(await answerOf(child)).toBe("ready");
  return child;
}

/** A process that ends instead must fail the test, not hang it. */
async function answerOf(child: ChildProcess): Promise<string> {
  const abort = new AbortController();
  const { signal } = abort;
  try {
    return await Promise.race([
      once(child, "message", { signal }).then(([text]) => String(text)),
      once(child, "exit", { signal }).then(([status]) => Promise.reject(new Error(`a racer ended with ${status}`))),
    ]);
  } finally {
    abort.abort();
  }
}

async function ask(child: ChildProcess, message: object | string): Promise<string> {
  const answer = answerOf(child);
  child.send(message);
  return await answer;
}

/** The one that holds the folder now. */
async function race(folder: string): Promise<ChildProcess> {
  const atMs = Date.now() + HEAD_START_MS;
  const answers = await Promise.all(racers.map((child) => ask(child, { folder, atMs })));
  const refusals = answers.filter((answer) => answer !== "held");
  expect(refusals, answers.join("\n")).toHaveLength(racers.length - 1);
  for (const refusal of refusals) expect(refusal).toMatch(IN_USE);
  return racers[answers.indexOf("held")]!;
}

const holderOf = (folder: string): { pid: number } => JSON.parse(readFileSync(join(folder, "service.lock"), "utf8"));

test("of processes that start in one folder in the same instant, exactly one holds it", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    // Some folders are new, some were used before.
    const folder = makeTempFolder("race");
    for (let use = 0; use < 2; use++) {
      const holder = await race(folder);
      expect(holderOf(folder).pid).toBe(holder.pid);
      expect(await ask(holder, "release")).toBe("released");
    }
  }
});

test("the folder of a killed holder is taken by exactly one, though its file still names the dead", async () => {
  const folder = makeTempFolder("race");
  let holder = await race(folder);
  for (let crash = 0; crash < CRASHES; crash++) {
    const exited = once(holder, "exit");
    holder.kill("SIGKILL");
    await exited;
    expect(holderOf(folder).pid).toBe(holder.pid);
    racers = racers.filter((child) => child !== holder);
    holder = await race(folder);
    racers.push(await startRacer());
  }
  await ask(holder, "release");
});

test("the file of a dead holder whose number another process has now, or that of another host, keeps nobody out", async () => {
  for (const left of [
    // This process lives, and never held the folder.
    { pid: process.pid, host: hostname(), locks: true },
    { pid: 1, host: "another-container", locks: true },
    { pid: 1, host: "another-container" },
  ]) {
    const folder = makeTempFolder("race");
    writeFileSync(join(folder, "service.lock"), JSON.stringify(left));
    await ask(await race(folder), "release");
  }
});

test("a holder of the same number in another container keeps the folder, as the kernel knows it", async () => {
  const folder = makeTempFolder("race");
  const holder = await race(folder);
  const [rival] = racers.filter((child) => child !== holder) as [ChildProcess];
  for (const host of ["another-container", hostname()]) {
    // As process 1 of one container looks to process 1 of the other.
    writeFileSync(join(folder, "service.lock"), JSON.stringify({ pid: rival.pid, host, locks: true }));
    expect(await ask(rival, { folder, atMs: 0 })).toContain(`is in use by process ${rival.pid}`);
  }
  await ask(holder, "release");
});

test("a holder that drains in another container is waited for until it lets go", async () => {
  const folder = makeTempFolder("race");
  const holder = await race(folder);
  const [rival] = racers.filter((child) => child !== holder) as [ChildProcess];
  const elsewhere = { pid: rival.pid, host: "another-container" };
  writeFileSync(join(folder, "service.lock"), JSON.stringify({ ...elsewhere, locks: true }));
  writeFileSync(join(folder, "draining"), JSON.stringify({ ...elsewhere, ports: [], untilMs: Date.now() + 600_000 }));
  const answers = [ask(rival, { folder, atMs: 0 }), ask(holder, "release")];
  expect(await Promise.all(answers)).toEqual(["held", "released"]);
  await ask(rival, "release");
});

test("a version without the lock, which wrote its number alone, is respected as long as it lives", async () => {
  const folder = makeTempFolder("race");
  writeFileSync(join(folder, "service.lock"), JSON.stringify({ pid: process.pid, host: hostname() }));
  const refused = await Promise.all(racers.map((child) => ask(child, { folder, atMs: 0 })));
  expect(new Set(refused).size).toBe(1);
  expect(refused[0]).toContain(`is in use by process ${process.pid}`);
});

test("a holder whose file cannot be removed lets the folder go all the same", async () => {
  const folder = makeTempFolder("race");
  const [holder, next] = racers as [ChildProcess, ChildProcess];
  expect(await ask(holder, { folder, atMs: 0 })).toBe("held");
  // As in a folder that was made read-only: what stands there now is no file that `rm` removes.
  rmSync(join(folder, "service.lock"));
  mkdirSync(join(folder, "service.lock"));
  expect(await ask(holder, "release")).toBe("released");
  rmSync(join(folder, "service.lock"), { recursive: true });
  expect(await ask(next, { folder, atMs: 0 })).toBe("held");
  await ask(next, "release");
});

test.each<[string, (file: string) => void]>([
  ["a folder", (file) => mkdirSync(file)],
  ["a pipe", (file) => execFileSync("mkfifo", [file])],
  ["a link to a file of somebody else", (file) => symlinkSync("/etc/hostname", file)],
  ["a link to nothing", (file) => symlinkSync("nowhere", file)],
  ["a text", (file) => writeFileSync(file, "a text")],
])("%s in the place of the lock is refused by name, and stays", async (_, put) => {
  const folder = makeTempFolder("race");
  put(join(folder, "folder.lock"));
  for (let tries = 0; tries < 2; tries++)
    expect(await ask(racers[0]!, { folder, atMs: 0 })).toMatch(/^data-folder: expected folder\.lock .*; remove it/);
});
