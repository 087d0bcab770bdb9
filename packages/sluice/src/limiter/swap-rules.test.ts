/**
 * Rules that are swapped while checks go on: what comes into force, when, and how many turns of the event loop are left to checks. Turns
 * are counted on the test's own clock: each reading advances it by a quarter of a millisecond. `npm run bench` prints pauses.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { afterEach, describe, expect, test, vi } from "vitest";
import { SluiceError } from "../errors.js";
import type { Override, Rule } from "../rules/rule.js";
import { createLimiter, type Limiter } from "./limiter.js";

/** Ten thousand rules or a hundred thousand overrides are more than 700 strides, and a slice ends at the fifth at the latest. */
const FEWEST_TURNS = 140;

const ruleFor = (id: string, more: Partial<Rule> = {}): Rule =>
  ({ id, key: ["user"], algorithm: "fixed-window", limit: 1_000_000, window: "1h", ...more }) as Rule;
const overridesFor = (count: number, limit: number) =>
  Array.from({ length: count }, (_, i) => ({ match: { user: `u${i}` }, limit: limit + i }));
/** Enough for several slices. */
const many = (limit: number) => [ruleFor("many", { limit, overrides: overridesFor(20_000, limit) })];
const few = (limit: number) => [ruleFor("few", { limit })];

const shapes = {
  "10 000 rules of 10 overrides": (limit: number) =>
    Array.from({ length: 10_000 }, (_, i) =>
      ruleFor(`r${i}`, { match: { tenant: `t${i}`, path: "/v1/**" }, overrides: overridesFor(10, limit) }),
    ),
  "one rule of 100 000 overrides": (limit: number) => [ruleFor("r0", { overrides: overridesFor(100_000, limit) })],
  "one rule of 100 000 overrides with two conditions, prefixes and blocks": (limit: number) => [
    ruleFor("r0", {
      match: { path: "/**", ip: "*" },
      overrides: Array.from({ length: 100_000 }, (_, i) => ({
        match: i % 2 === 0 ? { user: `u${i}`, path: `/v${i}/**` } : { user: "*", ip: `10.${i >> 9}.${i & 255}.0/24` },
        limit: limit + i,
      })),
    }),
  ],
} satisfies Record<string, (limit: number) => Rule[]>;

afterEach(() => vi.restoreAllMocks());

/** How many checks were answered while the work went on, each in a separate turn. */
async function checksDuring(limiter: Limiter, work: () => Promise<void>): Promise<number> {
  let nowMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => {
    nowMs += 0.25;
    return nowMs;
  });
  let isDone = false;
  let checks = 0;
  const working = work().finally(() => {
    isDone = true;
  });
  for (; !isDone; checks++) {
    await nextTurn();
    const decision = await limiter.check({ user: "u1", tenant: "t1", path: "/v1/x", ip: "10.0.1.1" });
    // There are hundreds of thousands: expect would take longer than they do.
    if (!decision.allowed) expect(decision).toMatchObject({ allowed: true });
  }
  await working;
  vi.restoreAllMocks();
  return checks;
}

describe.each(Object.entries(shapes))("%s", (name, rulesOf) => {
  test("are swapped in many turns, and checks are answered in each", async () => {
    const limiter = createLimiter({ rules: rulesOf(1_000_000_000) });
    const rules = rulesOf(2_000_000_000);
    const checks = await checksDuring(limiter, () => limiter.swapRules(rules));
    expect(isDeepStrictEqual(limiter.rules, rules)).toBe(true);
    console.info(`${name}: ${checks} checks during the swap`);
    expect(checks).toBeGreaterThan(FEWEST_TURNS);
    await limiter.close();
  });
});

test("several swaps at once share the turns, so that their slices do not add up to a long pause", async () => {
  const swap = (limiters: readonly Limiter[]): Promise<number> =>
    checksDuring(createLimiter({ rules: few(1_000_000_000) }), async () => {
      await Promise.all(limiters.map((limiter) => limiter.swapRules(many(1))));
    });
  const alone = await swap([createLimiter({ rules: few(1) })]);
  const limiters = Array.from({ length: 10 }, () => createLimiter({ rules: few(1) }));
  const together = await swap(limiters);
  for (const limiter of limiters) expect(limiter.rules[0]!.id).toBe("many");
  // If all slices were in the same turns, ten swaps would leave as few of them as one.
  expect(together).toBeGreaterThan(5 * alone);
});

test("the old rules decide until the new ones are complete", async () => {
  const limiter = createLimiter({ rules: few(7) });
  const swapping = limiter.swapRules(many(9));
  expect((await limiter.peek({ user: "ann" })).checks[0]!.rule).toBe("few");
  await nextTurn();
  expect([limiter.rulesVersion, limiter.rules[0]!.id]).toEqual([1, "few"]);
  await swapping;
  expect([limiter.rulesVersion, limiter.rules[0]!.id]).toEqual([2, "many"]);
  expect((await limiter.peek({ user: "u3" }, { cost: 0 })).limit).toBe(12);
});

describe("of overlapping swaps, the latest call wins", () => {
  test("even if an older one finishes later", async () => {
    const limiter = createLimiter({ rules: few(1) });
    const older = limiter.swapRules(many(2));
    const newer = limiter.swapRules(few(3), 30);
    await newer;
    expect([limiter.rulesVersion, limiter.rules[0]!.limit]).toEqual([30, 3]);
    await older;
    expect([limiter.rulesVersion, limiter.rules[0]!.limit]).toEqual([30, 3]);
  });

  test("even if it swaps at once", async () => {
    const limiter = createLimiter({ rules: few(1) });
    const older = limiter.swapRules(many(2));
    limiter.setRules(few(3));
    await older;
    expect([limiter.rulesVersion, limiter.rules[0]!.limit]).toEqual([2, 3]);
  });

  test("and each that comes into force has its own version", async () => {
    const limiter = createLimiter({ rules: few(1) });
    await Promise.all([limiter.swapRules(few(2)), limiter.swapRules(few(3)), limiter.swapRules(many(4))]);
    expect([limiter.rulesVersion, limiter.rules[0]!.limit]).toEqual([4, 4]);
  });

  test("unless it has mistakes: then the one before it comes into force", async () => {
    const limiter = createLimiter({ rules: few(1) });
    const good = limiter.swapRules(many(2));
    await expect(limiter.swapRules(few(-1))).rejects.toThrow("rules[0].limit");
    await good;
    expect([limiter.rulesVersion, limiter.rules[0]!.limit]).toEqual([2, 2]);
  });
});

test("rules with mistakes are refused with the error that setRules throws, and nothing changes", async () => {
  const limiter = createLimiter({ rules: few(1) });
  const bad = [
    ...many(5),
    ruleFor("twice", { limit: -1 }),
    ruleFor("twice", { overrides: [...overridesFor(500, 1), { match: { tier: "pro" }, limit: -1 }] }),
  ];
  const thrown = errorOf(() => limiter.setRules(bad));
  expect(thrown.mistakes?.map(({ path }) => path)).toEqual([
    "rules[1].limit",
    "rules[2].overrides[500].limit",
    "rules[2].id",
    "rules[2].overrides[500].match",
  ]);
  const rejected: unknown = await limiter.swapRules(bad).catch((error) => error);
  expect(rejected).toBeInstanceOf(SluiceError);
  expect(rejected).toMatchObject({ code: "invalid-rules", message: thrown.message, mistakes: thrown.mistakes });
  expect([limiter.rulesVersion, limiter.rules]).toEqual([1, few(1)]);
});

test("a document that its owner changes during the swap never brings unvalidated rules into force", async () => {
  const limiter = createLimiter({ rules: few(1) });
  const rules = many(5);
  const swapping = limiter.swapRules(rules).catch((error) => error);
  let turns = 0;
  let isDone = false;
  void swapping.then(() => {
    isDone = true;
  });
  for (; !isDone; turns++) {
    await nextTurn();
    // Already read, or rejected: both are fine.
    (rules[0]!.overrides as Override[])[turns] = { match: { user: "eve" }, limit: Number.NaN };
    rules[0]!.limit = Number.NaN;
  }
  expect(turns).toBeGreaterThan(2);
  const outcome: unknown = await swapping;
  if (outcome === undefined) expect(limiter.rules).toEqual(many(5));
  else expect(outcome).toMatchObject({ code: "invalid-rules" });
});

test("a closed limiter accepts no rules", async () => {
  const limiter = createLimiter({ rules: few(1) });
  await limiter.close();
  await expect(limiter.swapRules(few(2))).rejects.toMatchObject({ code: "closed" });
});

function errorOf(run: () => void): SluiceError {
  try {
    run();
  } catch (error) {
    if (error instanceof SluiceError) return error;
    throw error;
  }
  throw new Error("expected a SluiceError, got none");
}
