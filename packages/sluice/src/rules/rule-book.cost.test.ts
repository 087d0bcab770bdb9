/** The cost of matching, in steps: a stopwatch would measure the machine. */
import { expect, test } from "vitest";
import { SluiceError } from "../errors.js";
import { MOST_MATCHING_STEPS } from "./attribute-reader.js";
import type { Attributes, Match } from "./rule.js";
import { compileRuleBook, MOST_RULES_APPLIED, type RuleBook } from "./rule-book.js";
import { parseRules } from "./validate-rules.js";

const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

function bookOf(matches: readonly Match[], more: (i: number) => object = () => ({})): RuleBook {
  const rules = matches.map((match, i) => ({
    ...{ id: `r${i}`, match, key: [], algorithm: "fixed-window", limit: 9, window: "1m" },
    ...more(i),
  }));
  return compileRuleBook(parseRules(rules), 1);
}

function outcomeOf(book: RuleBook, request: Attributes): string {
  try {
    return `${book.checks(request, undefined).length} rules`;
  } catch (error) {
    if (error instanceof SluiceError) return error.code;
    throw error;
  }
}

/** Slightly more than the bound: the step that exceeds it is counted in full. */
const MOST = MOST_MATCHING_STEPS * 1.3;

test("a thousand globs and a path of 15 KB take few steps per character, and match as usual", () => {
  const book = bookOf(times(1_000, (i) => ({ path: `/v1/*/items${i}/*` })));
  const long = "x".repeat(15_000);
  expect(outcomeOf(book, { path: `/v1/${long}/items7/y` })).toBe("1 rules");
  expect(book.matchingSteps).toBeLessThan(3 * long.length);
  expect(outcomeOf(book, { path: `/v1/${long}/items7` })).toBe("0 rules");
});

test.each<[string, Match[], string]>([
  ["4 000 globs and 60 KB", times(4_000, (i) => ({ path: `/v1/*/items${i}/*` })), `/v1/${"x".repeat(60_000)}`],
  ["globs that the value all begins", times(5_000, (i) => ({ path: `**${i}*x` })), times(5_000, String).join(".")],
  ["the worst glob", [{ path: `${"**a*".repeat(63)}b` }], "a".repeat(60_000)],
  ["segments upon segments", times(80, (i) => ({ path: `${"**/".repeat(i + 1)}b` })), "a/".repeat(30_000)],
  [
    "a list of globs in each rule",
    times(10, (i) => ({ path: times(1_000, (j) => `*${i}-${j}*z`) })),
    "0-1".repeat(9_000),
  ],
])("%s: at most the bound, then refused", (_, matches, path) => {
  const book = bookOf(matches);
  const outcome = outcomeOf(book, { path });
  expect(book.matchingSteps).toBeLessThan(MOST);
  expect(outcome).toBe(book.matchingSteps > MOST_MATCHING_STEPS ? "too-complex" : "0 rules");
});

test("a value that exceeds the step budget is refused, never passed unmatched", () => {
  const book = bookOf([{ path: `${"**a*".repeat(63)}b` }, { path: "**/login" }]);
  expect(outcomeOf(book, { path: `/${"a".repeat(60_000)}/login` })).toBe("too-complex");
  expect(outcomeOf(book, { path: "/a/login" })).toBe("1 rules");
});

test("an attribute is matched against its patterns once, however many conditions use them", () => {
  const value = `/v1/${"x".repeat(1_000)}/y`;
  const match = { tier: "free", path: ["/v1/*/y", "/v2/*/y"] };
  const overrides = times(50, (i) => ({ match: { path: `/v1/*/y${i}` }, limit: i + 1 }));
  const one = bookOf([match]);
  const many = bookOf(
    times(50, () => match),
    () => ({ overrides }),
  );
  expect(outcomeOf(one, { tier: "free", path: value })).toBe("1 rules");
  expect(outcomeOf(many, { tier: "free", path: value })).toBe("50 rules");
  expect(many.matchingSteps).toBeLessThan(one.matchingSteps + 200);
});

test("lists of a thousand blocks in a hundred rules cost a request a few steps for each rule found", () => {
  const blocks = times(1_000, (i) => `10.${i >> 8}.${i & 255}.0/24`);
  const book = bookOf(times(100, () => ({ tier: "free", ip: blocks })));
  expect(outcomeOf(book, { tier: "free", ip: "192.0.2.1" })).toBe("0 rules");
  expect(book.matchingSteps).toBeLessThan(500);
  expect(outcomeOf(book, { tier: "free", ip: "10.3.231.7" })).toBe("100 rules");
});

test("globs and blocks of overrides are under the same bound", () => {
  const overrides = times(5_000, (i) => ({ match: { path: `**${i}*x` }, limit: i + 1 }));
  const book = bookOf([{ path: "**" }], () => ({ overrides }));
  expect(outcomeOf(book, { path: times(5_000, String).join(".") })).toBe("too-complex");
  expect(book.matchingSteps).toBeLessThan(MOST);
});

test("rules that are found by one condition and fail in another are counted too", () => {
  const matches = (count: number): Match[] => times(count, () => ({ tier: "free", plan: "x" }));
  const some = bookOf(matches(20_000));
  expect(outcomeOf(some, { tier: "free", plan: "y" })).toBe("0 rules");
  expect(some.matchingSteps).toBeGreaterThanOrEqual(40_000);
  const tooMany = bookOf(matches(60_000));
  expect(outcomeOf(tooMany, { tier: "free", plan: "y" })).toBe("too-complex");
  expect(tooMany.matchingSteps).toBeLessThan(MOST);
});

test("a request to which more rules apply than allowed is refused", () => {
  const most = bookOf(times(MOST_RULES_APPLIED, () => ({})));
  expect(outcomeOf(most, {})).toBe(`${MOST_RULES_APPLIED} rules`);
  expect(outcomeOf(bookOf(times(MOST_RULES_APPLIED + 1, () => ({}))), {})).toBe("too-complex");
});
