/**
 * What the twins of holds are asked: random rules, most of them with estimates, and schedules that hold, extend, settle, cancel, forge,
 * charge and reset.
 */
import fc from "fast-check";
import type { Rule } from "../../packages/sluice/src/index.js";

const window = fc.oneof(
  fc.integer({ min: 5, max: 60 }).map((ms) => `${ms}ms`),
  fc.constant("1h"),
);
const limit = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 13, max: 600 }));
const numbers = fc.oneof(
  fc.record({ algorithm: fc.constant("token-bucket" as const), limit, window }),
  fc.record({ algorithm: fc.constant("gcra" as const), limit, window }),
  fc.record({ algorithm: fc.constant("fixed-window" as const), limit, window }),
  fc.record({ algorithm: fc.constant("sliding-counter" as const), limit, window }),
  fc.record({
    algorithm: fc.constant("rolling-window" as const),
    limit,
    window,
    storage: fc.constantFrom("packed" as const, "sorted-set" as const),
  }),
);
const lease = { algorithm: "concurrency", limit: 4, ttl: "30ms" } as const;
const more = {
  candidate: { candidate: { limit: 7 } },
  override: { overrides: [{ match: { user: "b" }, limit: 9 }] },
  // One user has each: which, the rule's id decides.
  variants: {
    variants: [
      { name: "own", weight: 1 },
      { name: "small", weight: 1, limit: 8 },
      { name: "bucket", weight: 1, algorithm: "token-bucket", limit: 11, window: "40ms" },
    ],
  },
};
export const ruleSet = fc
  .array(
    fc.record({
      numbers,
      mode: fc.constantFrom("enforce" as const, "enforce" as const, "shadow" as const),
      overrun: fc.constantFrom("finish" as const, "stop" as const),
      kind: fc.constantFrom(
        "estimate" as const,
        "estimate" as const,
        "plain" as const,
        "candidate" as const,
        "override" as const,
        "variants" as const,
        "lease" as const,
      ),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((all) =>
    all.map(({ numbers: own, mode, overrun, kind }, i): Rule => {
      const rule = { id: `r${i}`, key: ["user"], mode, ...own };
      if (kind === "plain" && i > 0) return rule;
      if (kind === "lease" && i > 0) return { id: rule.id, key: rule.key, mode, ...lease };
      const estimated: Rule = { ...rule, cost: { attribute: `c${i % 2}` }, estimate: { default: 1, overrun } };
      return { ...estimated, ...(kind in more && more[kind as keyof typeof more]) } as Rule;
    }),
  );

/** Mostly small, at times far beyond what any counter holds. */
const amount = fc.oneof(
  { weight: 10, arbitrary: fc.integer({ min: 0, max: 20 }) },
  { weight: 2, arbitrary: fc.integer({ min: 21, max: 700 }) },
  { weight: 1, arbitrary: fc.constantFrom(6_000, 2 ** 40, 2 ** 48) },
);
export const step = fc.record({
  waitMs: fc.oneof(
    { weight: 30, arbitrary: fc.constant(0) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: 12 }) },
  ),
  user: fc.constantFrom("a", "b"),
  kind: fc.constantFrom(
    "hold",
    "hold",
    "hold",
    "settle",
    "settle",
    "extend",
    "extend",
    "cancel",
    "charge",
    "peek",
    "reset",
    "forge",
  ),
  /** Which of the reservations so far. */
  which: fc.nat({ max: 6 }),
  holdMs: fc.constantFrom(8, 60, 60_000),
  said: fc.integer({ min: 1, max: 30 }),
  first: fc.option(amount, { nil: undefined }),
  second: fc.option(amount, { nil: undefined }),
  /** What an extension asks for in all, instead: mostly more than a limit has left. */
  more: fc.option(fc.integer({ min: 1, max: 900 }), { nil: undefined }),
});
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Whatever the seed: an extension that the limit has no room for, under `stop`. */
const quiet: Step = {
  waitMs: 0,
  user: "a",
  kind: "hold",
  which: 0,
  holdMs: 60_000,
  said: 3,
  first: 1,
  second: 1,
  more: 9,
};
export const refusedExtension: [Rule[], Step[]] = [
  [
    {
      id: "r0",
      key: ["user"],
      algorithm: "fixed-window",
      limit: 5,
      window: "1h",
      cost: { attribute: "c0" },
      estimate: { default: 1, overrun: "stop" },
    },
  ],
  [quiet, { ...quiet, kind: "extend" }, { ...quiet, kind: "settle" }],
];
