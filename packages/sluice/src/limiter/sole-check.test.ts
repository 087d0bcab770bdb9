/** The fast path of a check in memory must give what the slow path gives: a `decision` listener makes a limiter take the slow path. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { answerOf } from "../http/answer.js";
import type { Attributes, Rule } from "../rules/rule.js";
import { memoryStore } from "../store/memory/memory-store.js";
import { createLimiter } from "./limiter.js";

const START_MS = 1_700_000_000_000;

function pair(rules: readonly Rule[], maxBytes?: number) {
  let nowMs = START_MS;
  const clock = { now: () => nowMs };
  const open = () =>
    createLimiter({ rules, store: memoryStore(maxBytes === undefined ? { clock } : { clock, maxBytes }) });
  const [short, long] = [open(), open()];
  let heard = 0;
  long.on("decision", () => void heard++);
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { short, long, pass, heard: () => heard };
}

const rule = fc.record(
  {
    id: fc.constant("r"),
    key: fc.constantFrom(["user"], ["user"], ["user", "tenant"], []),
    algorithm: fc.constantFrom("token-bucket", "gcra", "fixed-window", "sliding-counter", "rolling-window"),
    limit: fc.constantFrom(1, 2, 3, 10, 1_000_000),
    window: fc.constantFrom("1s", "7s", "1m"),
    cost: fc.constantFrom(1, 2, 4, 0, { attribute: "units" }),
    mode: fc.constantFrom("enforce", "shadow"),
    minInterval: fc.constant("100ms"),
  },
  { requiredKeys: ["id", "key", "algorithm", "limit", "window"] },
);

const attributes = fc.oneof(
  fc.record({ user: fc.constantFrom("a", "b", "é", "", "x".repeat(200)) }),
  fc.record({ user: fc.constantFrom("a", "b"), tenant: fc.constantFrom("t", "u"), units: fc.constantFrom("1", "3") }),
  fc.record({ user: fc.constantFrom<unknown>(1, true, undefined, null, {}, "a") }),
  fc.record({ tenant: fc.constantFrom("t") }),
  fc.constantFrom<unknown>(
    Object.create({ user: "inherited" }),
    Object.defineProperty({}, "user", { value: "hidden" }),
    Object.assign([], { user: "a" }),
    null,
    "user",
  ),
);
const step = fc.record({
  attributes,
  does: fc.constantFrom("check", "check", "check", "check", "refund", "reset", "give-back", "cost"),
  passMs: fc.constantFrom(0, 0, 0, 1, 100, 999, 7_001, -50),
});

/** Everything that a caller can see of a decision, or of the error in its place. */
async function seen(work: () => Promise<unknown>): Promise<unknown> {
  try {
    const made = await work();
    if (typeof made !== "object" || made === null) return made;
    const decision = made as Awaited<ReturnType<ReturnType<typeof createLimiter>["check"]>>;
    return {
      keys: Object.keys(decision),
      json: JSON.stringify(decision),
      spread: { ...decision },
      cloned: structuredClone({ ...decision }),
      answer: answerOf(decision),
    };
  } catch (error) {
    return String(error);
  }
}

test("a check of one rule by one attribute is decided the same by the fast path and the slow path", async () => {
  let heardInAll = 0;
  const run = fc.asyncProperty(rule, fc.array(step, { minLength: 1, maxLength: 40 }), async (made, steps) => {
    // Only a log of requests knows how close together they arrived.
    const { minInterval: _, ...others } = made;
    const { short, long, pass, heard } = pair([(made.algorithm === "rolling-window" ? made : others) as Rule]);
    for (const { attributes: given, does, passMs } of steps) {
      pass(passMs);
      const asked = given as Attributes;
      const both = [short, long].map((limiter) => {
        if (does === "reset") return seen(async () => limiter.reset("r", asked));
        if (does === "give-back") return seen(async () => limiter.giveBack(asked));
        if (does === "cost") return seen(async () => limiter.check(asked, { cost: 1 }));
        if (does === "refund") return seen(async () => limiter.refund(await limiter.check(asked)));
        return seen(async () => limiter.check(asked));
      });
      expect(await both[0]).toEqual(await both[1]);
    }
    heardInAll += heard();
    await Promise.all([short.close(), long.close()]);
  });
  await fc.assert(run, { numRuns: 300 });
  expect(heardInAll).toBeGreaterThan(1_000);
});

const plain: Rule = { id: "r", key: ["user"], algorithm: "fixed-window", limit: 3, window: "1m" };

test("a changed rule applies to the next check; additional rules end the fast path", async () => {
  const { short } = pair([plain]);
  await short.check({ user: "a" });
  short.setRules([{ ...plain, limit: 5 }], 7);
  expect(await short.check({ user: "a" })).toMatchObject({ limit: 5, remaining: 3, rulesVersion: 7 });
  short.setRules([plain, { ...plain, id: "second", limit: 1 }], 8);
  expect((await short.check({ user: "a" })).checks.map((check) => check.rule)).toEqual(["r", "second"]);
  await short.close();
});

test("a listener added later sees every check from then on", async () => {
  const { short } = pair([plain]);
  const heard: string[] = [];
  await short.check({ user: "a" });
  short.on("decision", ({ remaining }, { attributes: of }) => void heard.push(`${of.user} ${remaining}`));
  await short.check({ user: "a" });
  expect(heard).toEqual(["a 1"]);
  await short.close();
});

test("a closed limiter refuses on the fast path too", async () => {
  const { short } = pair([plain]);
  await short.check({ user: "a" });
  await short.close();
  await expect(short.check({ user: "a" })).rejects.toMatchObject({ code: "closed" });
});

test("keys beyond the cache are still counted", async () => {
  const { short } = pair([plain]);
  const names = Array.from({ length: 40_000 }, (_, i) => `user-${i}`);
  for (const user of names) await short.check({ user });
  for (const user of names.slice(0, 100)) expect((await short.check({ user })).remaining).toBe(1);
  await short.close();
});

test("evicted counters start over, and none is counted twice", async () => {
  const { short, long } = pair([plain], 2 ** 20);
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 5_000; i++) {
      const user = `user-${i}`;
      expect((await short.check({ user })).remaining).toBe((await long.check({ user })).remaining);
    }
  }
  await Promise.all([short.close(), long.close()]);
});
