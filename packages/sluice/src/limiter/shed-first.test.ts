import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Rule } from "../rules/rule.js";
import { virtualClock } from "../testing.js";
import { createLimiter, type Limiter } from "./limiter.js";

// Which requests are shed first changes over time.
beforeAll(() => void vi.useFakeTimers({ toFake: ["Date"], now: 0 }));
afterAll(() => void vi.useRealTimers());

const shedding = (more: object = {}): Rule =>
  ({ id: "keep-serving", key: [], algorithm: "load-shedding", signal: ["inflight"], limit: 2, ...more }) as Rule;
const perUser: Rule = { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 10, window: "1h" };
const withClasses = { class: { attribute: "criticality", default: "normal" } };

function limiterOf(...rules: Rule[]): { limiter: Limiter; clock: ReturnType<typeof virtualClock> } {
  const clock = virtualClock();
  return { limiter: createLimiter({ rules, clock }), clock };
}

test("a full server sheds with the reason load, charges nothing and asks no counter", async () => {
  const { limiter } = limiterOf(shedding(), perUser);
  const held = [await limiter.check({ user: "a" }), await limiter.check({ user: "a" })];
  const shed = await limiter.check({ user: "a" });
  expect(shed).toMatchObject({ allowed: false, reason: "load", rule: "keep-serving", violated: ["keep-serving"] });
  expect(shed.checks.map(({ rule }) => rule)).toEqual(["keep-serving"]);
  expect(shed.retryAfterMs).toBeGreaterThanOrEqual(1_000);
  await Promise.all(held.map(({ lease }) => lease!.release()));
  const passed = await limiter.check({ user: "a" });
  expect(passed).toMatchObject({ allowed: true, rule: "per-user", remaining: 7 });
  expect(passed.checks.map(({ rule }) => rule)).toEqual(["per-user", "keep-serving"]);
});

test("the wait reported to shed requests differs from one to the next", async () => {
  const { limiter } = limiterOf(shedding({ limit: 1 }));
  await limiter.check({});
  const waits = await Promise.all(Array.from({ length: 20 }, async () => (await limiter.check({})).retryAfterMs));
  expect(new Set(waits).size).toBeGreaterThan(15);
});

test("a place is freed once, however often it is released", async () => {
  const { limiter } = limiterOf(shedding());
  const [first, second] = [await limiter.check({}), await limiter.check({})];
  expect(await first.lease!.release()).toBe(true);
  expect(await first.lease!.release()).toBe(false);
  expect(await limiter.release(first.lease!.id)).toBe(false);
  expect((await limiter.check({})).allowed).toBe(true);
  expect((await limiter.check({})).allowed).toBe(false);
  expect(second.allowed).toBe(true);
});

test("a place whose request never ends is freed after 30 s, and not while it is renewed", async () => {
  const { limiter, clock } = limiterOf(shedding());
  const [kept] = [await limiter.check({}), await limiter.check({})];
  clock.advance("20s");
  expect(await limiter.renew(kept.lease!.id)).toBe(30_000);
  clock.advance("11s");
  expect((await limiter.check({})).allowed).toBe(true);
  expect((await limiter.check({})).allowed).toBe(false);
});

test("a request that a counter refuses holds no place", async () => {
  const { limiter } = limiterOf(shedding(), { ...perUser, limit: 1 } as Rule);
  await (await limiter.check({ user: "a" })).lease!.release();
  for (let i = 0; i < 5; i++) {
    const refused = await limiter.check({ user: "a" });
    expect(refused).toMatchObject({ allowed: false, reason: "limit" });
    expect(refused.lease).toBeUndefined();
  }
  expect(limiter.sheddingStats()[0]).toMatchObject({ inFlight: 0 });
});

test("a malformed request holds no place", async () => {
  const { limiter } = limiterOf(shedding(), perUser);
  for (let i = 0; i < 5; i++) await expect(limiter.check({ user: "a" }, { id: "" })).rejects.toThrow(/id/);
  await expect(limiter.check({ user: "a" }, { cost: -1 })).rejects.toThrow(/cost/);
  expect(limiter.sheddingStats()[0]).toMatchObject({ inFlight: 0 });
});

test("one lease holds the place in flight and the place of a concurrency rule", async () => {
  const places: Rule = { id: "places", key: ["user"], algorithm: "concurrency", limit: 1 };
  const { limiter } = limiterOf(shedding(), places);
  const held = await limiter.check({ user: "a" });
  expect(await limiter.check({ user: "a" })).toMatchObject({ allowed: false, reason: "concurrency" });
  expect(limiter.sheddingStats()[0]).toMatchObject({ inFlight: 1 });
  expect(await held.lease!.renew()).toBe(true);
  expect(await limiter.release(held.lease!.id)).toBe(true);
  expect(limiter.sheddingStats()[0]).toMatchObject({ inFlight: 0 });
  expect((await limiter.check({ user: "a" })).allowed).toBe(true);
});

test("classes are nested: important requests pass where normal ones are shed, critical ones above the limit", async () => {
  const { limiter } = limiterOf(shedding({ limit: 10, ...withClasses }));
  const passing = async (criticality: string): Promise<number> => {
    let count = 0;
    for (let i = 0; i < 50; i++) if ((await limiter.check({ criticality, user: String(i) })).allowed) count++;
    return count;
  };
  const counts = [
    await passing("sheddable"),
    await passing("normal"),
    await passing("important"),
    await passing("critical"),
  ];
  expect(counts.every((count) => count >= 0)).toBe(true);
  const sums = counts.map((_, i) => counts.slice(0, i + 1).reduce((sum, count) => sum + count, 0));
  expect(sums[0]).toBeLessThanOrEqual(9);
  expect(sums[1]).toBeLessThanOrEqual(10);
  expect(sums[2]).toBe(10);
  expect(sums[3]).toBe(20);
});

test("a class that no rule names, or that is malicious, is the default class", async () => {
  const { limiter } = limiterOf(shedding({ limit: 100, ...withClasses }));
  for (const criticality of ["CRITICAL", "critical ", "", "__proto__", "constructor", "x".repeat(10_000), 7, true]) {
    await limiter.check({ criticality });
  }
  const classes = limiter.sheddingStats()[0]!.classes;
  expect(classes.find(({ name }) => name === "normal")).toMatchObject({ passed: 8 });
});

test("shadow mode reports what it would shed, and sheds nothing", async () => {
  const { limiter } = limiterOf(shedding({ limit: 1, mode: "shadow" }));
  await limiter.check({});
  const second = await limiter.check({});
  expect(second.allowed).toBe(true);
  expect(second.checks[0]).toMatchObject({ mode: "shadow", allowed: false, reason: "load" });
});

test("a look holds no place and is not counted", async () => {
  const { limiter } = limiterOf(shedding({ limit: 1 }));
  for (let i = 0; i < 5; i++) expect((await limiter.peek({})).allowed).toBe(true);
  await limiter.check({});
  expect(await limiter.peek({})).toMatchObject({ allowed: false, reason: "load" });
  expect(limiter.sheddingStats()[0]!.classes).toMatchObject([{ name: "all", passed: 1, shed: 0 }]);
  expect((await limiter.check({}, { cost: 0 })).allowed).toBe(true);
  expect((await limiter.charge({})).allowed).toBe(true);
});

test("a request of a caller that cannot report its end is judged, and holds no place", async () => {
  const { limiter } = limiterOf(shedding({ limit: 1 }));
  const asked = await limiter.check({}, { hold: false });
  expect(asked.allowed).toBe(true);
  expect(asked.lease).toBeUndefined();
  await limiter.check({});
  expect((await limiter.check({}, { hold: false })).allowed).toBe(false);
});

test("each value of the key has its own gauge", async () => {
  const { limiter } = limiterOf(shedding({ key: ["upstream"], limit: 1 }));
  expect((await limiter.check({ upstream: "a" })).allowed).toBe(true);
  expect((await limiter.check({ upstream: "a" })).allowed).toBe(false);
  expect((await limiter.check({ upstream: "b" })).allowed).toBe(true);
  expect((await limiter.check({})).checks).toEqual([]);
});

test("a change of other rules, or of the limit, keeps the requests in flight", async () => {
  const { limiter } = limiterOf(shedding());
  const held = await limiter.check({});
  await limiter.check({});
  limiter.setRules([shedding(), perUser]);
  expect((await limiter.check({ user: "a" })).allowed).toBe(false);
  limiter.setRules([shedding({ limit: 3 })]);
  expect((await limiter.check({})).allowed).toBe(true);
  expect((await limiter.check({})).allowed).toBe(false);
  await held.lease!.release();
  expect((await limiter.check({})).allowed).toBe(true);
});

test("several attribute sets of one request are one request in flight", async () => {
  const { limiter } = limiterOf(shedding(), perUser);
  await limiter.checkAll([{ attributes: { user: "a" } }, { attributes: { user: "b" } }]);
  expect(limiter.sheddingStats()[0]).toMatchObject({ inFlight: 1 });
  await limiter.check({});
  const { decision, parts } = await limiter.checkAll([{ attributes: { user: "a" } }, { attributes: { user: "b" } }]);
  expect(decision.reason).toBe("load");
  expect(parts).toEqual([[expect.objectContaining({ rule: "keep-serving", reason: "load" })], []]);
});

test("an explanation lists the rule, and why it does not apply", async () => {
  const { limiter } = limiterOf(shedding({ match: { path: "/v1/**" } }), perUser);
  const { rules } = await limiter.explain({ user: "a", path: "/" });
  expect(rules.map(({ rule, matched }) => [rule, matched])).toEqual([
    ["keep-serving", false],
    ["per-user", true],
  ]);
  const shown = await limiter.explain({ user: "a", path: "/v1/x" });
  expect(shown.rules[0]).toMatchObject({ matched: true });
  expect(shown.decision.checks.map(({ rule }) => rule)).toEqual(["per-user", "keep-serving"]);
});

test("reports of utilisation shed by class, slowly, and expire", async () => {
  const { limiter, clock } = limiterOf(
    shedding({ signal: "reported", limit: undefined, class: { attribute: "class", default: "normal" } }),
  );
  const shares = async (): Promise<Record<string, number>> => {
    const passed: Record<string, number> = { sheddable: 0, normal: 0, critical: 0 };
    for (let i = 0; i < 100; i++) {
      for (const name of Object.keys(passed)) {
        if ((await limiter.check({ class: name, user: `u${i}` })).allowed) passed[name]!++;
      }
      clock.advance(10);
    }
    return passed;
  };
  expect(await shares()).toEqual({ sheddable: 100, normal: 100, critical: 100 });
  const overload = async (value: number): Promise<Record<string, number>> => {
    limiter.reportUtilisation(value, { source: "db", ttlMs: 30_000 });
    return await shares();
  };
  const first = await overload(1);
  for (let i = 0; i < 8; i++) await overload(1);
  const settled = await overload(1);
  expect(first.normal).toBeGreaterThan(40);
  expect(settled).toEqual({ sheddable: 0, normal: 0, critical: 100 });
  clock.advance("60s");
  for (let i = 0; i < 20; i++) await shares();
  expect(await shares()).toEqual({ sheddable: 100, normal: 100, critical: 100 });
});

test("an invalid report is refused", () => {
  const { limiter } = limiterOf(shedding({ signal: "reported", limit: undefined }));
  for (const value of [Number.NaN, -0.1, 1.01, 1e9, Number.POSITIVE_INFINITY, "0.5" as unknown as number]) {
    expect(() => limiter.reportUtilisation(value, { source: "db" })).toThrow(
      /value: expected a utilisation from 0 to 1/,
    );
  }
  expect(() => limiter.reportUtilisation(0.5, { source: "" })).toThrow(/source/);
  expect(() => limiter.reportUtilisation(0.5, { source: "db", ttlMs: 1e9 })).toThrow(/ttl/);
});
