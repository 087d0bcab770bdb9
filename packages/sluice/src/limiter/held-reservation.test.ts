import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Rule } from "../rules/rule.js";
import { virtualClock } from "../testing.js";
import { holdReservation } from "./held-reservation.js";
import { createLimiter } from "./limiter.js";

const LIMIT = 1_000;
const rule = (estimate: Partial<Rule["estimate"]> = {}): Rule => ({
  id: "units",
  key: [],
  algorithm: "fixed-window",
  limit: LIMIT,
  window: "1d",
  cost: { attribute: "units" },
  estimate: { default: 100, ttl: "30s", ...estimate },
});

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

async function begin(given: Rule) {
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [given] });
  const extend = vi.spyOn(limiter, "extend");
  const { reservation } = await limiter.check({});
  const response = { used: {} as Record<string, number>, stopped: 0, mistakes: [] as unknown[] };
  const held = holdReservation({
    limiter,
    reservation,
    usedSoFar: () => response.used,
    onRefused: () => response.stopped++,
    onMistake: (error) => response.mistakes.push(error),
  });
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      clock.advance(1_000);
      await vi.advanceTimersByTimeAsync(1_000);
    }
  };
  const used = async () => {
    const { remaining, debt = 0 } = await limiter.peek({}, { cost: 0 });
    return LIMIT - remaining! + debt;
  };
  return { limiter, reservation, response, held, pass, used, extend };
}

test("a reservation lives as long as its response, extended three times per term", async () => {
  const { held, pass, used, extend } = await begin(rule());
  await pass(120_000);
  expect(extend).toHaveBeenCalledTimes(12);
  expect(await used()).toBe(100);
  held.end({ units: 7 });
  await pass(1_000);
  expect(await used()).toBe(7);
  await pass(60_000);
  expect(extend).toHaveBeenCalledTimes(12);
});

test("a response that uses more than is held gets a quarter more held, and goes into debt", async () => {
  const { response, pass, used, extend } = await begin(rule());
  response.used = { units: 100 };
  await pass(2_000);
  expect(extend).not.toHaveBeenCalled();
  response.used = { units: 400 };
  await pass(3_000);
  expect([extend.mock.calls.length, await used()]).toEqual([1, 500]);
  response.used = { units: 2_000 };
  await pass(1_000);
  expect([response.stopped, await used()]).toEqual([0, 2_500]);
});

test("under overrun: stop no more is requested than was used, and a refusal stops the response", async () => {
  const { response, pass, used } = await begin(rule({ overrun: "stop" }));
  response.used = { units: 1_000 };
  await pass(1_000);
  expect([response.stopped, await used()]).toEqual([0, 1_000]);
  response.used = { units: 1_001 };
  await pass(1_000);
  expect([response.stopped, await used()]).toEqual([1, 1_000]);
});

test("a reservation settled elsewhere is not extended again and again", async () => {
  const { limiter, reservation, response, held, pass, used, extend } = await begin(rule());
  await limiter.settle(reservation!.id, { units: 5 });
  response.used = { units: 400 };
  await pass(60_000);
  expect(extend).toHaveBeenCalledTimes(1);
  held.end({ units: 400 });
  await pass(1_000);
  expect([await used(), response.mistakes]).toEqual([5, []]);
});

test("an extension that fails is tried again, and a response with unreadable usage does no harm", async () => {
  const { response, pass, used, extend } = await begin(rule());
  response.used = { units: 400 };
  extend.mockRejectedValueOnce(new Error("the store is away"));
  await pass(2_000);
  expect([extend.mock.calls.length, await used()]).toEqual([2, 500]);
  Object.defineProperty(response, "used", {
    get: () => {
      throw new Error("gone");
    },
  });
  await pass(2_000);
  expect(await used()).toBe(500);
});

test("an end counts once: an empty result stands as held, undefined gives back, a promise is awaited", async () => {
  const unknown = await begin(rule());
  unknown.held.end({});
  unknown.held.end({ units: 1 });
  await unknown.pass(1_000);
  expect(await unknown.used()).toBe(100);

  const nothing = await begin(rule());
  nothing.held.end(undefined);
  await nothing.pass(1_000);
  expect(await nothing.used()).toBe(0);

  const later = await begin(rule());
  later.held.end(Promise.resolve({ units: 3 }));
  await later.pass(1_000);
  expect(await later.used()).toBe(3);
});

test("costs that cannot be determined, or are invalid, are reported", async () => {
  const { held, response, pass, used } = await begin(rule());
  held.end(Promise.reject(new Error("no database")));
  await pass(1_000);
  expect([response.mistakes.length, await used()]).toEqual([1, 100]);
  const other = await begin(rule());
  other.held.end({ bytes: 1 });
  await other.pass(1_000);
  expect(String(other.response.mistakes[0])).toContain("expected the cost that the reservation waits for: units");
});

test("a cost's attribute may have a name that every object inherits", async () => {
  for (const attribute of ["constructor", "__proto__"]) {
    const { held, response, pass, used } = await begin({ ...rule(), cost: { attribute } });
    await pass(60_000);
    expect([attribute, response.mistakes, await used()]).toEqual([attribute, [], 100]);
    response.used = Object.fromEntries([[attribute, 400]]);
    await pass(1_000);
    expect([attribute, await used()]).toEqual([attribute, 500]);
    held.end(Object.fromEntries([[attribute, 7]]));
    await pass(1_000);
    expect([attribute, await used()]).toEqual([attribute, 7]);
  }
});
