import { expect, test } from "vitest";
import type { Rule } from "../rules/rule.js";
import { memoryStore } from "../store/memory/memory-store.js";
import { createLimiter } from "./limiter.js";
import { outsideUnits } from "./limiter-operations.js";
import { mostUnits, unitsPerMs } from "./outside-units.js";

const minute: Rule = { id: "r", key: ["user"], algorithm: "rolling-window", limit: 60, window: "1m", prefetch: "10s" };

function held(rule: Rule) {
  const limiter = createLimiter({ rules: [rule] });
  const units = outsideUnits(limiter);
  return { limiter, units, check: units.checks({ user: "u" })[0]! };
}

test("units fetched from outside are not available to checks; what is settled is counted, the rest comes back", async () => {
  const { limiter, units, check } = held(minute);
  const first = await units.fetch(check, { holder: "h", seq: 1, used: 0, held: 0, want: 20 });
  expect(first.grant).toMatchObject({ units: 20, kept: 0, lifeMs: 10_000 });
  expect((await limiter.peek({ user: "u" })).remaining).toBe(40);
  await units.fetch(check, { holder: "h", seq: 2, used: 5, held: 3, want: 0 });
  expect((await limiter.peek({ user: "u" })).remaining).toBe(52);
  await limiter.close();
});

test("a charge from outside is counted in full, past the limit", async () => {
  const { limiter, units, check } = held(minute);
  await units.charge([{ ...check, cost: 70 }]);
  expect(await limiter.charge({ user: "u" }, { cost: 0 })).toMatchObject({ debt: 10 });
  await limiter.close();
});

test.each(["rolling-window", "fixed-window", "sliding-counter", "token-bucket", "gcra"] as const)(
  "charges from outside cause a debt of at most one capacity, however many come at once: %s",
  async (algorithm) => {
    const { prefetch: _, ...plain } = minute as Rule & { prefetch: string };
    const { limiter, units, check } = held({ ...plain, algorithm } as Rule);
    await Promise.all(Array.from({ length: 50 }, () => units.charge([{ ...check, cost: 60 }])));
    for (let i = 0; i < 50; i++) await units.charge([{ ...check, cost: 1_000_000 }]);
    const { debt } = await limiter.charge({ user: "u" }, { cost: 0 });
    expect(debt).toBeGreaterThan(58);
    expect(debt).toBeLessThanOrEqual(60);
    await limiter.close();
  },
);

test("a charge that fails does not delay those that follow", async () => {
  const store = memoryStore();
  const decide = store.decide.bind(store);
  let failures = 1;
  store.decide = (request) => {
    if (failures-- > 0) throw new Error("away");
    return decide(request);
  };
  const limiter = createLimiter({ rules: [minute], store });
  const units = outsideUnits(limiter);
  const check = { ...units.checks({ user: "u" })[0]!, cost: 1 };
  const [first, second] = await Promise.allSettled([units.charge([check]), units.charge([check])]);
  expect([first.status, second.status]).toEqual(["rejected", "fulfilled"]);
  expect((await limiter.peek({ user: "u" })).remaining).toBe(59);
  await limiter.close();
});

test("a counter's capacity and its long-run rate", () => {
  expect([mostUnits(held(minute).check), unitsPerMs(held(minute).check)]).toEqual([60, 0.001]);
  const bucket = held({ id: "b", key: ["user"], algorithm: "gcra", limit: 60, window: "1m", burst: 30 } as Rule).check;
  expect([mostUnits(bucket), unitsPerMs(bucket)]).toEqual([30, 0.001]);
});
