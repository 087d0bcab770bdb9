import { expect, test } from "vitest";
import { LoopLateness } from "./loop-lateness.js";

/** A loop in virtual time that fires timers when it is not blocked. */
function loop() {
  let nowMonotonicMs = 0;
  let timer: { dueAtMonotonicMs: number; everyMs: number; tick: () => void } | undefined;
  const runUntil = (endMonotonicMs: number): void => {
    while (timer !== undefined && timer.dueAtMonotonicMs <= endMonotonicMs) {
      nowMonotonicMs = Math.max(nowMonotonicMs, timer.dueAtMonotonicMs);
      // As in Node: the next one is due this long after this one.
      timer.dueAtMonotonicMs = nowMonotonicMs + timer.everyMs;
      timer.tick();
    }
    nowMonotonicMs = endMonotonicMs;
  };
  return {
    lateness: new LoopLateness({
      nowMonotonicMs: () => nowMonotonicMs,
      every: (everyMs, tick) => {
        timer = { dueAtMonotonicMs: nowMonotonicMs + everyMs, everyMs, tick };
        return () => {
          timer = undefined;
        };
      },
    }),
    runUntil,
    blockUntil: (endMonotonicMs: number): void => {
      nowMonotonicMs = endMonotonicMs;
    },
    isTicking: (): boolean => timer !== undefined,
  };
}

test("a loop that is never blocked is never late", () => {
  const { lateness, runUntil } = loop();
  lateness.integral();
  runUntil(10_000);
  expect(lateness.integral()).toBe(0);
});

test("a delay of d adds d x d / 2, before the timer has fired and after", () => {
  const { lateness, runUntil, blockUntil } = loop();
  lateness.integral();
  runUntil(15);
  blockUntil(120);
  expect(lateness.integral()).toBe((100 * 100) / 2);
  runUntil(121);
  expect(lateness.integral()).toBe((100 * 100) / 2);
});

test("timers that fire within their granularity are not late", () => {
  const { lateness, runUntil, blockUntil } = loop();
  lateness.integral();
  for (let i = 0; i < 100; i++) {
    blockUntil(i * 12 + 12);
    runUntil(i * 12 + 12);
  }
  expect(lateness.integral()).toBe(0);
});

test("the timer stops when nobody asks for a minute, and the next call starts it again", () => {
  const { lateness, runUntil, blockUntil, isTicking } = loop();
  expect(isTicking()).toBe(false);
  lateness.integral();
  runUntil(59_000);
  expect(isTicking()).toBe(true);
  runUntil(61_000);
  expect(isTicking()).toBe(false);
  blockUntil(100_000);
  expect(lateness.integral()).toBe(0);
  expect(isTicking()).toBe(true);
});

test("the real timer notices a blocked event loop and does not keep the process alive", async () => {
  const lateness = new LoopLateness();
  lateness.integral();
  await new Promise((resolve) => setTimeout(resolve, 15));
  const before = lateness.integral();
  const untilMonotonicMs = performance.now() + 60;
  while (performance.now() < untilMonotonicMs);
  // Blocked for 60 ms, of which the timer was overdue for 50 at least.
  expect(lateness.integral() - before).toBeGreaterThanOrEqual((50 * 50) / 2);
});
