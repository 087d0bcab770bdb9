/**
 * The indexed book against the simplest reading of the rules: try every rule, every condition, every override in turn. This reading shares
 * no code with the book except the building of keys.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Check } from "../check.js";
import { counterKey, counterKeyEnd, spellValues } from "../keys.js";
import { algorithmNames } from "./field-kinds.js";
import { numberFieldsOf } from "./fields.js";
import type { AlgorithmName, Attributes, CountingRule, Match, MatchValue, NumberFields } from "./rule.js";
import { compileRuleBook } from "./rule-book.js";
import { parseRules, validateRules } from "./validate-rules.js";

const addresses = [
  "10.0.0.1",
  "10.0.1.1",
  "10.1.0.1",
  "::ffff:10.0.0.1",
  "2001:db8::1",
  "2001:db8:8000::1",
  "nonsense",
];
/** Which blocks contain which of the addresses, written by hand. */
const blocks: Record<string, readonly string[]> = {
  "10.0.0.1": ["10.0.0.1", "::ffff:10.0.0.1"],
  "10.0.0.0/24": ["10.0.0.1", "::ffff:10.0.0.1"],
  "10.0.0.0/15": ["10.0.0.1", "10.0.1.1", "10.1.0.1", "::ffff:10.0.0.1"],
  "0.0.0.0/0": ["10.0.0.1", "10.0.1.1", "10.1.0.1", "::ffff:10.0.0.1"],
  "2001:db8::/33": ["2001:db8::1"],
  "::/0": ["2001:db8::1", "2001:db8:8000::1"],
  "*": addresses,
};
const paths = ["/", "/a", "/a/", "/a/b", "/a/bc", "/a/b/c", "/b/c", "x"];
const globs = ["/a/**", "/a/b*", "/a/*", "/**", "*", "/*/c", "/a/b", "/a", "**/c", "/a/**/c"];
const words = ["x", "y", "5", "true", "", "*", "x*"];
const names = ["user", "tier", "__proto__", "constructor"];

const oneOrMany = (values: readonly (string | number | boolean)[]): fc.Arbitrary<MatchValue> =>
  fc.oneof(fc.constantFrom(...values), fc.array(fc.constantFrom(...values), { minLength: 1, maxLength: 3 }));

const match: fc.Arbitrary<Match> = fc
  .record(
    {
      path: oneOrMany(globs),
      ip: oneOrMany(Object.keys(blocks)),
      user: oneOrMany(words),
      tier: oneOrMany([...words, 5, true]),
      constructor: oneOrMany(words),
      ["__proto__"]: oneOrMany(words),
    },
    { requiredKeys: [], noNullPrototype: true },
  )
  .map((match) => pick(match, Object.keys(match).slice(0, 3)));

const key = fc.uniqueArray(fc.constantFrom(...names, "path", "ip"), { maxLength: 2 });

const rule = fc
  .record({
    key,
    match,
    overrides: fc.array(fc.record({ match, limit: fc.integer({ min: 1, max: 50 }) }), { maxLength: 4 }),
    mode: fc.constantFrom("enforce", "shadow", "off"),
    candidate: fc.option(fc.constant({ limit: 77 }), { nil: undefined }),
    cost: fc.constantFrom(undefined, 3, { attribute: "tokens" }),
  })
  .map(({ overrides, ...rule }) => ({
    ...rule,
    overrides: overrides
      .map((override) => ({
        ...override,
        match: pick(
          override.match,
          Object.keys(override.match).filter((name) => rule.key.includes(name) || Object.hasOwn(rule.match, name)),
        ),
      }))
      .filter((override) => Object.keys(override.match).length > 0),
  }));

const attributes = fc.record(
  {
    path: fc.constantFrom(...paths),
    ip: fc.constantFrom(...addresses),
    user: fc.constantFrom("x", "xy", "y", ""),
    tier: fc.constantFrom("x", 5, true, "z"),
    constructor: fc.constantFrom("x", "y"),
    ["__proto__"]: fc.constantFrom("x", "y"),
    tokens: fc.constantFrom(4, "9"),
    unknown: fc.constantFrom("a"),
  },
  { requiredKeys: [], noNullPrototype: true },
) as fc.Arbitrary<Attributes>;

/** A copy with some of the fields, including one named `__proto__`. */
function pick<Value>(from: Readonly<Record<string, Value>>, names: readonly string[]): Record<string, Value> {
  return Object.fromEntries(names.map((name) => [name, from[name]!]));
}

test("the indexed book gives the checks that a scan over all rules gives", () => {
  const seed = Date.now() % 2 ** 31;
  console.info(`rule book against scan: seed ${seed}`);
  fc.assert(
    fc.property(fc.array(rule, { maxLength: 30 }), fc.array(attributes, { maxLength: 8 }), (drafts, requests) => {
      const rules = parseRules(
        drafts.map((draft, i) => ({ id: `r${i}`, algorithm: "fixed-window", limit: 100, window: "1m", ...draft })),
      );
      const book = compileRuleBook(rules, 1);
      for (const request of requests) {
        const found = book.checks(request, undefined);
        expect(found.map(summary)).toEqual(scan(rules as CountingRule[], request));
        const applied = book.explain(request).filter(({ matched }) => matched);
        expect(applied.map(({ key }) => key)).toEqual(found.filter(({ live }) => live === -1).map(({ key }) => key));
      }
    }),
    { seed, numRuns: 500 },
  );
});

const duration = fc.constantFrom("1ms", "1s", "1m", "1d", "7d", "day", "month");
const anyNumbers = fc.record(
  {
    limit: fc.constantFrom(1, 100, 20_000_000),
    window: duration,
    refill: fc.constantFrom({ amount: 3, every: "1s" }),
    align: fc.constantFrom("epoch", "calendar"),
    timezone: fc.constantFrom("UTC", "Asia/Tokyo"),
    minInterval: fc.constantFrom("1ms", "1s"),
    storage: fc.constantFrom("sorted-set", "packed"),
    burst: fc.constantFrom(1, 5),
    ttl: fc.constantFrom("1s"),
  },
  { requiredKeys: [] },
);
const algorithm = fc.constantFrom(...algorithmNames);

test("whatever passes validation compiles, under every variant, candidate and override", () => {
  const layered = fc
    .tuple(
      algorithm,
      anyNumbers,
      fc.array(anyNumbers, { maxLength: 2 }),
      fc.option(algorithm),
      fc.array(anyNumbers, { maxLength: 2 }),
    )
    .map(([algorithm, numbers, overrides, other, others]) => ({
      ...{ id: "r", key: ["user"], algorithm, limit: 5, ...fitting(numbers, algorithm) },
      overrides: overrides.map((override) => ({ ...fitting(override, algorithm), match: { user: "x" } })),
      candidate: other === null ? undefined : { algorithm: other, ...fitting(numbers, other) },
      variants:
        others.length === 0
          ? undefined
          : others.map((numbers, i) => variantOf(i, fitting(numbers, other ?? algorithm), other)),
    }));
  let valid = 0;
  fc.assert(
    fc.property(layered, (draft) => {
      const outcome = validateRules([draft]);
      if ("mistakes" in outcome) return;
      valid++;
      const book = compileRuleBook(outcome.rules, 1);
      const stored = new Set(book.keysOf("r", { user: "x" }));
      for (const check of book.checks({ user: "x" }, undefined)) expect(stored).toContain(check.key);
    }),
    { numRuns: 3000 },
  );
  // A test of valid rules that finds none would pass vacuously.
  expect(valid).toBeGreaterThan(100);
});

/** Without the fields that the algorithm does not have: rules with those never pass validation. */
function fitting(numbers: object, algorithm: AlgorithmName): object {
  const known = numberFieldsOf.get(algorithm)!;
  return Object.fromEntries(Object.entries(numbers).filter(([name]) => known.includes(name as keyof NumberFields)));
}

function variantOf(i: number, numbers: object, algorithm: AlgorithmName | null): object {
  return { name: `v${i}`, weight: 1, ...(algorithm === null ? {} : { algorithm }), ...numbers };
}

interface Summary {
  mode: string;
  limit: number;
  key: string;
  cost: number;
  live: number;
}

const summary = ({ plan, key, cost, live }: Check): Summary => ({
  mode: plan.mode,
  limit: plan.policy.limit,
  key,
  cost,
  live,
});

function scan(rules: readonly CountingRule[], request: Attributes): Summary[] {
  const checks: Summary[] = [];
  for (const rule of rules) {
    if (rule.mode === "off" || !matches(rule.match ?? {}, request)) continue;
    if (rule.key.some((name) => !Object.hasOwn(request, name))) continue;
    const override = rule.overrides?.find((override) => matches(override.match, request));
    const spelled = spellValues(
      rule.key,
      rule.key.map((name) => String(request[name])),
    );
    const cost = typeof rule.cost === "object" ? Number(request.tokens ?? 1) : (rule.cost ?? 1);
    const stored = "fixed-window";
    const live = checks.length;
    checks.push({
      mode: rule.mode ?? "enforce",
      limit: override?.limit ?? rule.limit,
      key: counterKey(spelled, counterKeyEnd({ rule: rule.id, stored, candidate: false })),
      cost,
      live: -1,
    });
    if (rule.candidate === undefined) continue;
    checks.push({
      mode: "candidate",
      limit: override?.limit ?? rule.candidate.limit!,
      key: counterKey(spelled, counterKeyEnd({ rule: rule.id, stored, candidate: true })),
      cost,
      live,
    });
  }
  return checks;
}

function matches(match: Match, request: Attributes): boolean {
  return Object.keys(match).every((name) => {
    if (!Object.hasOwn(request, name)) return false;
    const value = String(request[name]);
    return [match[name]!].flat().some((wanted) => {
      if (name === "ip") return blocks[String(wanted)]!.includes(value);
      return wanted === "*" || regExpOf(String(wanted)).test(value);
    });
  });
}

function regExpOf(glob: string): RegExp {
  const source = glob.replace(/(^|\/)\*\*\/|\*\*|\*/g, (wildcard, before) => {
    if (wildcard === "*") return "[^/]*";
    return wildcard === "**" ? ".*" : `${before}(?:.*/)?`;
  });
  return new RegExp(`^${source}$`);
}
