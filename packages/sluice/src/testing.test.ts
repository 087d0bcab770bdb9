import { expect, test } from "vitest";
import { virtualClock } from "./testing.js";

test("the clock stands still until it is moved, by ms or by a duration", () => {
  const clock = virtualClock(1_000);
  expect(clock.now()).toBe(1_000);
  clock.advance(5);
  clock.advance("1m");
  expect(clock.now()).toBe(61_005);
  clock.set(7);
  expect(clock.now()).toBe(7);
});

test("its default start is the start of every window up to a day", () => {
  expect(virtualClock().now() % 86_400_000).toBe(0);
});

test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, "soon", "-5s"])("%s does not advance the clock", (by) => {
  const clock = virtualClock(1_000);
  expect(() => clock.advance(by)).toThrow('advance: expected ms or a duration such as "1m"');
  expect(clock.now()).toBe(1_000);
});
