/**
 * Random rules and schedules. Windows are a few milliseconds, so that real time passing on a real Redis opens and closes them;
 * limits are small, so that most schedules meet refusals.
 */
import fc from "fast-check";
import type { Rule } from "sluice";

const duration = fc.integer({ min: 1, max: 40 }).map((ms) => `${ms}ms`);
const limit = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 8 }) },
  { weight: 1, arbitrary: fc.integer({ min: 9, max: 60 }) },
);

/** The numbers of one algorithm, with its name. */
export const numbers = fc.oneof(
  fc.record({ algorithm: fc.constant("token-bucket" as const), limit, window: duration }),
  fc.record({
    algorithm: fc.constant("token-bucket" as const),
    limit,
    refill: fc.record({ amount: fc.integer({ min: 1, max: 7 }), every: duration }),
  }),
  fc.record({ algorithm: fc.constant("gcra" as const), limit, window: duration }),
  fc.record({
    algorithm: fc.constant("gcra" as const),
    limit,
    window: duration,
    burst: fc.integer({ min: 1, max: 8 }),
  }),
  fc.record({ algorithm: fc.constant("fixed-window" as const), limit, window: duration }),
  fc.record({ algorithm: fc.constant("sliding-counter" as const), limit, window: duration }),
  fc.record({
    algorithm: fc.constant("rolling-window" as const),
    limit,
    window: fc.integer({ min: 5, max: 40 }).map((ms) => `${ms}ms`),
    storage: fc.constantFrom("sorted-set" as const, "packed" as const),
    minInterval: fc.constantFrom("1ms", "2ms", "5ms"),
  }),
  fc.record({
    algorithm: fc.constant("rolling-window" as const),
    limit,
    window: duration,
    storage: fc.constantFrom("sorted-set" as const, "packed" as const),
  }),
  fc.record({ algorithm: fc.constant("concurrency" as const), limit, ttl: duration }),
);

const blockFor = fc.oneof(
  { weight: 7, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom("1ms", "4ms", ["2ms", "6ms"], ["1ms", "3ms", "20ms"]) },
);

const maxWait = fc.oneof(
  { weight: 2, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom("1ms", "4ms", "15ms", "60ms", "500ms") },
);
const turnless: readonly string[] = ["concurrency", "sliding-counter"];

/** The same; of those that can, some block, some hand out turns, and some deny everything. */
const numbersOrNone = fc
  .record({ numbers, blockFor, maxWait, denies: fc.integer({ min: 0, max: 31 }) })
  .map(({ numbers, blockFor, maxWait, denies }) => ({
    ...numbers,
    ...(denies === 0 && { limit: 0 }),
    ...(maxWait !== undefined && !turnless.includes(numbers.algorithm) && { maxWait }),
    ...(blockFor !== undefined && numbers.algorithm !== "concurrency" && { blockFor }),
  }));

/** One to four rules over two attributes; some in shadow, some with a candidate. */
export const ruleSet: fc.Arbitrary<Rule[]> = fc
  .array(
    fc.record({
      numbers: numbersOrNone,
      key: fc.constantFrom(["user"], ["user", "path"], ["path"]),
      mode: fc.constantFrom("enforce" as const, "enforce" as const, "shadow" as const),
      candidate: fc.option(numbersOrNone, { nil: undefined, freq: 3 }),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((rules) =>
    rules.map(
      ({ numbers, key, mode, candidate }, i) =>
        ({ id: `r${i}`, key, mode, ...numbers, ...(candidate && { candidate }) }) as Rule,
    ),
  );

/** What happens at one step; `waitMs` comes before it. */
export interface Step {
  readonly waitMs: number;
  readonly attributes: { user: string; path: string };
  readonly cost: number;
  /** `mixed`: every other check of the request is a charge. */
  readonly kind:
    | "check"
    | "peek"
    | "repeat"
    | "charge"
    | "mixed"
    | "refund"
    | "release"
    | "renew"
    | "give-back"
    | "reset";
  /** Whether a charge is far above every limit. */
  readonly far: boolean;
}

export const step: fc.Arbitrary<Step> = fc.record({
  waitMs: fc.oneof({ weight: 60, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 8 }) }),
  attributes: fc.record({ user: fc.constantFrom("a", "b"), path: fc.constantFrom("/x", "/y") }),
  cost: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.integer({ min: 0, max: 9 }) }),
  kind: fc.oneof(
    { weight: 30, arbitrary: fc.constant("check" as const) },
    { weight: 3, arbitrary: fc.constantFrom("peek" as const, "repeat" as const, "release" as const) },
    { weight: 3, arbitrary: fc.constantFrom("charge" as const, "mixed" as const, "refund" as const) },
    { weight: 2, arbitrary: fc.constantFrom("renew" as const, "give-back" as const, "reset" as const) },
  ),
  far: fc.oneof({ weight: 8, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
});
