import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { runAtOnce, runInSlices, type Sliced, Stride, TimeSlice } from "./time-slices.js";

afterEach(() => vi.restoreAllMocks());

/** A clock that stands still until a step of the work moves it. */
function steppedClock(): { advance(ms: number): void } {
  let nowMonotonicMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => nowMonotonicMs);
  return {
    advance(ms) {
      nowMonotonicMs += ms;
    },
  };
}

test("a stride ends at every 128th step, including added steps", () => {
  const stride = new Stride();
  const ends = Array.from({ length: 300 }, (_, i) => (stride.isOver() ? i + 1 : 0)).filter((step) => step > 0);
  expect(ends).toEqual([128, 256]);
  stride.add(127);
  expect(stride.isOver()).toBe(true);
});

test("work run at once ends in the same turn, however often it yields", () => {
  function* counting(): Sliced<number> {
    let steps = 0;
    for (; steps < 1_000; steps++) yield;
    return steps;
  }
  expect(runAtOnce(counting())).toBe(1_000);
});

test("two jobs in slices take turns: one slice of one job per turn of the event loop", async () => {
  const clock = steppedClock();
  const log: string[] = [];
  function* job(name: string): Sliced<string> {
    for (let step = 1; step <= 4; step++) {
      log.push(`${name}${step}`);
      clock.advance(0.5);
      yield;
    }
    return name;
  }
  const both = Promise.all([runInSlices(job("a")), runInSlices(job("b"))]);
  expect(log).toEqual([]);
  for (let turn = 1; turn <= 6; turn++) {
    await nextTurn();
    log.push("|");
  }
  expect(await both).toEqual(["a", "b"]);
  expect(log.join(" ").replace(/( \|)+$/, "")).toBe("a1 a2 | b1 b2 | a3 a4 | b3 b4");
});

test("an async job shares the turns with sliced ones", async () => {
  const clock = steppedClock();
  const log: string[] = [];
  function* job(): Sliced<void> {
    for (let step = 1; step <= 4; step++) {
      log.push(`g${step}`);
      clock.advance(0.5);
      yield;
    }
  }
  const asyncJob = async (): Promise<void> => {
    const slice = new TimeSlice();
    for (let step = 1; step <= 4; step++) {
      log.push(`a${step}`);
      clock.advance(0.5);
      if (slice.isOver()) await slice.next();
    }
  };
  await Promise.all([runInSlices(job()), asyncJob()]);
  expect(log.join(" ")).toBe("a1 a2 g1 g2 a3 a4 g3 g4");
});

test("other work of a turn goes first in the next one", async () => {
  const clock = steppedClock();
  const log: string[] = [];
  function* job(): Sliced<void> {
    for (let step = 1; step <= 4; step++) {
      log.push(`a${step}`);
      clock.advance(0.5);
      yield;
    }
  }
  const done = runInSlices(job());
  await nextTurn();
  log.push("request");
  clock.advance(1);
  await nextTurn();
  log.push("reply");
  await done;
  expect(log.join(" ")).toBe("a1 a2 request reply a3 a4");
});

test("an error in the work rejects, and the turns go on", async () => {
  // biome-ignore lint/correctness/useYield: this work fails before it could pause.
  function* failing(): Sliced<never> {
    throw new Error("a mistake in the work");
  }
  function* fine(): Sliced<string> {
    yield;
    return "fine";
  }
  const failed = runInSlices(failing());
  const other = runInSlices(fine());
  await expect(failed).rejects.toThrow("a mistake in the work");
  expect(await other).toBe("fine");
});
