import fc from "fast-check";
import { expect, test } from "vitest";
import { LimitController, type LimitRange } from "./limit-controller.js";

const range: LimitRange = { limit: 100, min: 20, max: 200, target: 0.8 };

interface Plant {
  /** Units per second that would arrive. */
  readonly demand: (second: number) => number;
  /** Units per second that the backend can handle. */
  readonly capacity: (second: number) => number;
  /** Age of a report, in seconds, when it counts. */
  readonly lag: number;
  readonly noise?: (second: number) => number;
}

/** Simulates a backend whose utilisation follows what the limit admits; returns the limits, second by second. */
function play({ demand, capacity, lag, noise = () => 0 }: Plant, seconds: number, target = range.target): number[] {
  const controller = new LimitController({ ...range, target }, 0);
  const measured: number[] = [];
  const limits: number[] = [];
  let limit = range.limit;
  for (let second = 0; second < seconds; second++) {
    const admitted = Math.min(demand(second), Math.round(limit));
    measured.push(Math.min(1, Math.max(0, admitted / capacity(second) + noise(second))));
    limit = controller.next(limit, measured[second - lag], second * 1_000);
    limits.push(Math.round(limit));
  }
  return limits;
}

/** Half the distance between the lowest and the highest, relative to the middle. */
function swing(limits: readonly number[]): number {
  const [low, high] = [Math.min(...limits), Math.max(...limits)];
  return (high - low) / (high + low);
}

test.each([0, 1, 2, 3])("a step of overload settles near the target without oscillation, reports %i s old", (lag) => {
  const limits = play({ demand: () => 1_000, capacity: (s) => (s < 60 ? 150 : 60), lag }, 240);
  const settled = limits.slice(180);
  for (const limit of settled) expect(Math.abs(limit / 60 / 0.8 - 1)).toBeLessThan(0.1);
  expect(swing(settled)).toBeLessThanOrEqual(0.1);
  // It got there within half a minute of the step.
  expect(limits.slice(90).every((limit) => limit < 70)).toBe(true);
});

test.each([0, 1, 2, 3])("recovery: the limit comes back when the backend does, reports %i s old", (lag) => {
  const limits = play({ demand: () => 1_000, capacity: (s) => (s < 60 ? 50 : 200), lag }, 240);
  const settled = limits.slice(180);
  for (const limit of settled) expect(Math.abs(limit / 200 / 0.8 - 1)).toBeLessThan(0.1);
  expect(swing(settled)).toBeLessThanOrEqual(0.1);
});

test.each([0.85, 0.9, 0.93, 0.95, 0.97].flatMap((target) => [0, 1, 2, 3].map((lag) => [target, lag] as const)))(
  "a target of %d close to saturation does not end in oscillation, reports %i s old",
  (target, lag) => {
    const limits = play({ demand: () => 1_000, capacity: (s) => (s < 60 ? 150 : 60), lag }, 400, target);
    expect(swing(limits.slice(300))).toBeLessThanOrEqual(0.1);
    expect(limits.at(-1)! / 60).toBeGreaterThan(0.75);
  },
);

test("noise of up to a tenth moves a settled limit by no more than a tenth", () => {
  const noise = (second: number): number => 0.05 * Math.sin(second * 2.39996);
  const limits = play({ demand: () => 1_000, capacity: () => 100, lag: 1, noise }, 400);
  expect(swing(limits.slice(200))).toBeLessThanOrEqual(0.1);
});

test("little demand lets the limit rise to its maximum; a burst brings it down within ten steps", () => {
  const limits = play({ demand: (s) => (s < 60 ? 5 : 1_000), capacity: () => 50, lag: 1 }, 180);
  expect(limits[59]).toBe(200);
  expect(limits[72]!).toBeLessThanOrEqual(50);
  expect(swing(limits.slice(150))).toBeLessThanOrEqual(0.1);
});

test.each([0.5, 0.8, 0.93, 0.95, 0.97, 0.99])(
  "a limit at rest falls when the backend is saturated, target %d",
  (target) => {
    const controller = new LimitController({ ...range, target }, 0);
    let limit = controller.next(range.limit, target, 0);
    expect(limit).toBe(range.limit);
    for (let second = 1; second < 10; second++) limit = controller.next(limit, 1, second * 1_000);
    expect(limit).toBe(range.min);
  },
);

test("whatever is measured, the limit stays in its range", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined })), (measured) => {
      const controller = new LimitController(range, 0);
      let limit = range.limit;
      return measured.every((utilisation, second) => {
        limit = controller.next(limit, utilisation, second * 1_000);
        return limit >= range.min && limit <= range.max;
      });
    }),
  );
});

test("without utilisation the limit holds for half a minute, then drifts back to the rule's own", () => {
  const controller = new LimitController(range, 0);
  let limit = controller.next(50, 0.8, 0);
  for (let second = 1; second < 30; second++) limit = controller.next(limit, undefined, second * 1_000);
  expect(limit).toBe(50);
  for (let second = 30; second < 100; second++) limit = controller.next(limit, undefined, second * 1_000);
  expect(limit).toBe(100);
});
