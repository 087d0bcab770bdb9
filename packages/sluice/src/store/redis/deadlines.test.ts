import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, test, vi } from "vitest";
import { Deadlines } from "./deadlines.js";

test("calls that have not ended by the deadline are notified once, in order, and no others", async () => {
  const deadlines = new Deadlines(20);
  const late: number[] = [];
  // More than are kept before the ended ones are dropped.
  const watches = Array.from({ length: 1_000 }, (_, i) => deadlines.watch(() => late.push(i)));
  for (let i = 0; i < watches.length; i++) if (i % 100 !== 7) watches[i]!.end();
  const after = deadlines.watch(() => late.push(1_000));
  expect(late).toEqual([]);
  await expect.poll(() => late.length, { timeout: 5_000 }).toBe(11);
  after.end();
  await sleep(50);
  expect(late).toEqual([7, 107, 207, 307, 407, 507, 607, 707, 807, 907, 1_000]);
});

test("an answered call is free to be collected, though an earlier one is still in flight", async () => {
  const deadlines = new Deadlines(60_000);
  const first = deadlines.watch(() => {});
  const calls = Array.from({ length: 100 }, () => {
    const call = { requests: new Array(10).fill("a request") };
    deadlines.watch(() => void call.requests).end();
    return new WeakRef(call);
  });
  // A WeakRef keeps its target until the turn in which it was made is over.
  await sleep(0);
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  expect(calls.filter((call) => call.deref() !== undefined)).toHaveLength(0);
  first.end();
});

test("a call that begins later ends later", async () => {
  const deadlines = new Deadlines(60);
  const late: string[] = [];
  deadlines.watch(() => late.push("first"));
  await sleep(30);
  const startedMs = performance.now();
  const ended = new Promise<number>((resolve) =>
    deadlines.watch(() => {
      late.push("second");
      resolve(performance.now() - startedMs);
    }),
  );
  expect(await ended).toBeGreaterThanOrEqual(59);
  expect(late).toEqual(["first", "second"]);
});

const blockFor = (ms: number): void => {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
};

test("time during which the process was blocked does not count, up to the maximum of a call", async () => {
  const order: string[] = [];
  const deadlines = new Deadlines(100, 1_000);
  const ended = new Promise<void>((resolve) =>
    deadlines.watch(() => {
      order.push("late");
      resolve();
    }),
  );
  blockFor(150);
  setTimeout(() => order.push("50 ms later"), 50);
  // Both in one turn if the machine is busy: the timer's turn comes first.
  await ended;
  expect(order).toEqual(["50 ms later", "late"]);
  const bounded = new Promise<void>((resolve) => new Deadlines(20, 100).watch(resolve));
  blockFor(150);
  let turns = 0;
  const counting = setInterval(() => turns++, 50);
  await bounded;
  clearInterval(counting);
  expect(turns).toBe(0);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test("a call gets a full allowance from when the process resumed, not more: earlier waits of others do not extend it", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] });
  const onTime = performance.now.bind(performance);
  let heldUpMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => onTime() + heldUpMs);
  const startMs = performance.now();
  const ends: Record<string, number> = {};
  const deadlines = new Deadlines(200, 1_000);
  const watch = (name: string): void =>
    void deadlines.watch(() => {
      ends[name] = Math.round(performance.now() - startMs);
    });
  watch("first");
  vi.advanceTimersByTime(150);
  watch("second");
  vi.advanceTimersByTime(40);
  // The first one's timer comes 12 ms late.
  heldUpMs = 12;
  vi.advanceTimersByTime(20);
  watch("third");
  vi.advanceTimersByTime(1_000);
  // The faked end of a turn comes a millisecond after its timers.
  expect(ends).toEqual({ first: 414, second: 414, third: 423 });
});
