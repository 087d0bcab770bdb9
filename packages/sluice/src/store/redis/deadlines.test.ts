import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { Deadlines } from "./deadlines.js";

test("whoever has not ended by the deadline is told so once, in order, and nobody else", async () => {
  const deadlines = new Deadlines(20);
  const late: number[] = [];
  // More than are kept before those that have ended are dropped.
  const watches = Array.from({ length: 1_000 }, (_, i) => deadlines.watch(() => late.push(i)));
  for (let i = 0; i < watches.length; i++) if (i % 100 !== 7) watches[i]!.end();
  const after = deadlines.watch(() => late.push(1_000));
  expect(late).toEqual([]);
  await expect.poll(() => late.length, { timeout: 5_000 }).toBe(11);
  after.end();
  await sleep(50);
  expect(late).toEqual([7, 107, 207, 307, 407, 507, 607, 707, 807, 907, 1_000]);
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

test("time in which the process was held up does not count, up to the most that a call may take", async () => {
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
  // Both in one turn, if the machine is busy: the timer's turn comes first.
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

test("a call gets a whole allowance from when the process went on, not more: time that others waited before is not given to it", () => {
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
