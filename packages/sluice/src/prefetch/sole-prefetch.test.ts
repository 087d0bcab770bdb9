/**
 * The fast path of a check from units in hand must give what the slow path gives: a `decision` listener makes a limiter take the slow path.
 * Each has its own store, a millisecond away, in one virtual time.
 */
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { passed, useVirtualTime, within } from "../../../../test/harness/virtual-time.js";
import { answerOf } from "../http/answer.js";
import type { Decision } from "../limiter/decision.js";
import { createLimiter, type Limiter } from "../limiter/limiter.js";
import type { Attributes, Rule } from "../rules/rule.js";
import { MemoryStore } from "../store/memory/memory-store.js";
import type { Store, StoreReply, StoreRequest } from "../store/store.js";
import { Prefetch } from "./prefetch.js";

class FarStore extends MemoryStore implements Store {
  readonly isRemote = true;

  // @ts-expect-error: the model answers at once, this one does not.
  override async decide(request: StoreRequest): Promise<StoreReply> {
    await passed(0.5);
    const reply = super.decide(request);
    await passed(0.5);
    return reply;
  }
}

beforeEach(() => {
  useVirtualTime();
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A request may wait for several fetches. */
const awaited = <T>(made: Promise<T>): Promise<T> => within(40, made);

/** Everything that a caller can see of a decision, or of the error in its place. */
async function seen(work: () => Promise<unknown>): Promise<unknown> {
  try {
    const made = await work();
    if (typeof made !== "object" || made === null) return made;
    const decision = made as Decision;
    return {
      keys: Object.keys(decision),
      json: JSON.stringify(decision),
      cloned: structuredClone({ ...decision }),
      answer: answerOf(decision),
    };
  } catch (error) {
    return String(error);
  }
}

const ruleOf = (chosen: Partial<Rule>): Rule =>
  ({
    id: "hot",
    key: ["user"],
    algorithm: "rolling-window",
    limit: 300,
    window: "1s",
    prefetch: "20ms",
    ...chosen,
  }) as Rule;

const rules = fc
  .record({
    algorithm: fc.constantFrom("rolling-window", "rolling-window", "token-bucket", "gcra", "fixed-window"),
    limit: fc.constantFrom(20, 300, 5_000, 100_000, 100_000),
    window: fc.constantFrom("200ms", "1s"),
    cost: fc.constantFrom(1, 1, 2),
    prefetch: fc.constantFrom("20ms", "20ms", "60ms", "60ms", undefined),
    second: fc.constantFrom(false, false, false, true),
  })
  .map(({ second, prefetch, ...chosen }) => {
    const first = ruleOf({ ...chosen, prefetch } as Partial<Rule>);
    return second ? [first, ruleOf({ id: "all", key: [], limit: 100_000 })] : [first];
  });

const attributes = fc.constantFrom<Attributes>(
  { user: "u" },
  { user: "u" },
  { user: "u", more: "x" },
  { user: "other" },
  {},
);

const step = fc.record({
  attributes,
  does: fc.constantFrom(...Array(12).fill("burst"), "check", "check", "cost", "id", "refund", "reset", "peek", "rules"),
  rules,
  passMs: fc.constantFrom(0, 0, 1, 1, 1, 3, 10, 70),
});

test("a check from units in hand is decided the same by the fast path and the slow path", async () => {
  const short = vi.spyOn(Prefetch.prototype, "decideSole");
  let refusals = 0;
  let prefetched = 0;
  let refunds = 0;
  const run = fc.asyncProperty(rules, fc.array(step, { minLength: 40, maxLength: 60 }), async (first, steps) => {
    const both = [first, first].map((made) => createLimiter({ store: new FarStore(), rules: made })) as [
      Limiter,
      Limiter,
    ];
    both[1].on("decision", ({ allowed, guarantee }) => {
      if (!allowed) refusals++;
      if (guarantee === "prefetched") prefetched++;
    });
    let version = 1;
    for (const { attributes: asked, does, rules: next, passMs } of steps) {
      const asks = both.map((limiter) => {
        if (does === "rules") return seen(async () => limiter.setRules(next, version + 1));
        if (does === "reset") return seen(async () => limiter.reset("hot", asked));
        if (does === "peek") return seen(async () => limiter.peek(asked));
        if (does === "cost") return seen(async () => limiter.check(asked, { cost: 3 }));
        if (does === "id") return seen(async () => limiter.check(asked, { id: "the-same" }));
        if (does === "check") return seen(async () => limiter.check(asked));
        if (does === "refund") return seen(async () => limiter.refund(await limiter.check(asked)));
        // As many at once as it takes to make a key busy.
        return Promise.all(Array.from({ length: 12 }, async () => JSON.stringify(await limiter.check(asked))));
      });
      if (does === "rules") version++;
      await vi.advanceTimersByTimeAsync(passMs);
      const [mine, other] = await awaited(Promise.all(asks));
      expect(mine).toEqual(other);
      if (does === "refund" && mine === true) refunds++;
      expect(both[0].prefetchStats()).toEqual(both[1].prefetchStats());
    }
    await awaited(Promise.all(both.map((limiter) => limiter.close())));
  });
  await fc.assert(run, { numRuns: 40 });
  const answered = short.mock.results.filter(({ value }) => value !== undefined).length;
  // Both paths were taken, both answers given.
  expect(answered).toBeGreaterThan(500);
  expect({ refusals, prefetched, refunds }).toSatisfy((seenOf: object) => Object.values(seenOf).every((n) => n > 20));
});

test("a listener, a closed limiter and a check with options take the slow path", async () => {
  const short = vi.spyOn(Prefetch.prototype, "decideSole");
  const limiter = createLimiter({ store: new FarStore(), rules: [ruleOf({ limit: 100_000 })] });
  const ask = async (options?: object): Promise<Decision> => {
    return await awaited(options === undefined ? limiter.check({ user: "u" }) : limiter.check({ user: "u" }, options));
  };
  for (let i = 0; i < 60; i++) {
    for (let n = 0; n < 5; n++) void limiter.check({ user: "u" });
    await vi.advanceTimersByTimeAsync(1);
  }
  expect(await ask()).toMatchObject({ guarantee: "prefetched" });
  short.mockClear();
  await ask({ cost: 1 });
  const heard: unknown[] = [];
  limiter.on("decision", ({ guarantee }) => void heard.push(guarantee));
  await ask();
  expect(short).not.toHaveBeenCalled();
  expect(heard).toHaveLength(1);
  await awaited(limiter.close());
  await expect(limiter.check({ user: "u" })).rejects.toMatchObject({ code: "closed" });
});
