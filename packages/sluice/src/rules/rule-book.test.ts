import { expect, test } from "vitest";
import { SluiceError } from "../errors.js";
import type { Attributes, Rule } from "./rule.js";
import { compileRuleBook, type RuleBook } from "./rule-book.js";
import { parseRules } from "./validate-rules.js";

const perUser = { id: "per-user", key: ["user"], algorithm: "rolling-window", limit: 100, window: "1m" };

const bookOf = (...rules: unknown[]): RuleBook => compileRuleBook(parseRules(rules), 7);
const idsFor = (book: RuleBook, attributes: Attributes): string[] =>
  book.checks(attributes, undefined).map(({ plan }) => plan.rule);

function refusalOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof SluiceError) return `${error.code} ${error.message}`;
    throw error;
  }
  return "none";
}

test("a request by a user leads to one check of the user's counter", () => {
  expect(bookOf(perUser).checks({ user: "42" }, undefined)).toEqual([
    {
      plan: {
        rule: "per-user",
        mode: "enforce",
        variant: undefined,
        policy: { stored: "rolling-window-packed", limit: 100, windowMs: 60_000, minIntervalMs: 0 },
        keyEnd: "}:per-user:p",
        onStoreFailure: "local",
        prefetchMs: 0,
        regionTermMs: 0,
        maxWaitMs: 0,
      },
      key: "{user=42}:per-user:p",
      cost: 1,
      live: -1,
    },
  ]);
});

test("the book knows its version, its rules and each by id", () => {
  const book = bookOf(perUser);
  expect(book.version).toBe(7);
  expect(book.rules).toEqual([perUser]);
  expect(book.find("per-user")).toBe(book.rules[0]);
  expect(book.find("constructor")).toBeUndefined();
});

test("a rule whose key attribute is absent does not apply, one whose key is empty always does", () => {
  const book = bookOf(perUser, { ...perUser, id: "global", key: [] });
  expect(idsFor(book, {})).toEqual(["global"]);
  expect(idsFor(book, { user: undefined })).toEqual(["global"]);
  expect(book.checks({}, undefined)[0]!.key).toBe("{*}:global:p");
});

test("an empty string is a present value", () => {
  expect(bookOf(perUser).checks({ user: "" }, undefined)[0]!.key).toBe("{user=}:per-user:p");
});

test("all conditions must hold, and one value of a list", () => {
  const book = bookOf({ ...perUser, match: { path: "/v1/**", method: ["GET", "POST"], tier: "free" } });
  const request = { user: "42", path: "/v1/x", method: "GET", tier: "free" };
  expect(idsFor(book, request)).toEqual(["per-user"]);
  expect(idsFor(book, { ...request, method: "POST" })).toEqual(["per-user"]);
  expect(idsFor(book, { ...request, method: "PUT" })).toEqual([]);
  expect(idsFor(book, { ...request, path: "/v1" })).toEqual([]);
  expect(idsFor(book, { ...request, tier: "pro" })).toEqual([]);
});

test('"*" requires presence, even of a value with slashes', () => {
  const book = bookOf({ ...perUser, key: [], match: { path: "*" } });
  expect(idsFor(book, { path: "/a/b" })).toEqual(["per-user"]);
  expect(idsFor(book, {})).toEqual([]);
});

test("numbers and booleans match their text", () => {
  const book = bookOf({ ...perUser, key: [], match: { plan: 5, trial: true } });
  expect(idsFor(book, { plan: "5", trial: "true" })).toEqual(["per-user"]);
  expect(idsFor(book, { plan: 5, trial: true })).toEqual(["per-user"]);
  expect(idsFor(book, { plan: 6, trial: true })).toEqual([]);
});

test("an address matches in any notation, and by its block", () => {
  const one = bookOf({ ...perUser, key: [], match: { ip: "::ffff:10.1.2.3" } });
  expect(idsFor(one, { ip: "10.1.2.3" })).toEqual(["per-user"]);
  const many = bookOf({ ...perUser, key: [], match: { ip: ["10.0.0.0/8", "2001:db8::/32"] } });
  expect(idsFor(many, { ip: "::ffff:a01:203" })).toEqual(["per-user"]);
  expect(idsFor(many, { ip: "2001:DB8:0::1" })).toEqual(["per-user"]);
  expect(idsFor(many, { ip: "11.0.0.1" })).toEqual([]);
  expect(idsFor(many, { ip: "unknown" })).toEqual([]);
});

test("a rule that matches by several values applies once, and checks keep the book's order", () => {
  const book = bookOf(
    { ...perUser, id: "z", key: [], match: { path: ["/a/**", "/a/b", "/a/b*"] } },
    { ...perUser, id: "y", key: [] },
    { ...perUser, id: "x", key: [], match: { path: "/**" } },
    { ...perUser, id: "w" },
  );
  expect(idsFor(book, { user: "1", path: "/a/b" })).toEqual(["z", "y", "x", "w"]);
});

test("a rule that is off makes no check, and one in shadow mode is marked", () => {
  const book = bookOf({ ...perUser, mode: "off" }, { ...perUser, id: "second", mode: "shadow" });
  expect(book.checks({ user: "42" }, undefined).map(({ plan }) => [plan.rule, plan.mode])).toEqual([
    ["second", "shadow"],
  ]);
});

test("a candidate's check follows its live check and has a separate counter", () => {
  const book = bookOf(
    { ...perUser, id: "first" },
    { ...perUser, candidate: { limit: 50 } },
    { ...perUser, id: "last" },
  );
  const checks = book.checks({ user: "42" }, 3);
  expect(checks.map(({ plan, key, cost, live }) => [plan.mode, plan.policy.limit, key, cost, live])).toEqual([
    ["enforce", 100, "{user=42}:first:p", 3, -1],
    ["enforce", 100, "{user=42}:per-user:p", 3, -1],
    ["candidate", 50, "{user=42}:per-user:P", 3, 1],
    ["enforce", 100, "{user=42}:last:p", 3, -1],
  ]);
  expect(checks[2]!.plan.rule).toBe("per-user");
});

test("the first override that matches changes the numbers of the live check and of the candidate", () => {
  const book = bookOf({
    ...perUser,
    overrides: [
      { match: { user: ["acme", "zeta"] }, limit: 5000 },
      { match: { user: "a*" }, limit: 7, window: "1s" },
      { match: { user: "acme" }, limit: 1 },
    ],
    candidate: { algorithm: "gcra", burst: 3 },
  });
  const numbers = (user: string): unknown => book.checks({ user }, undefined).map(({ plan }) => plan.policy);
  expect(numbers("acme")).toMatchObject([
    { limit: 5000, windowMs: 60_000 },
    { limit: 5000, capacity: 3 },
  ]);
  expect(numbers("abc")).toMatchObject([
    { limit: 7, windowMs: 1000 },
    { limit: 7, capacity: 3, scaleMs: 1000 },
  ]);
  expect(numbers("other")).toMatchObject([{ limit: 100 }, { limit: 100, capacity: 3 }]);
});

test("variants share the keys; an override applies on top of a variant; the key contains no variant", () => {
  const book = bookOf({
    ...perUser,
    minInterval: "50ms",
    overrides: [{ match: { user: "acme" }, limit: 5000, minInterval: "1ms" }],
    variants: [
      { name: "control", weight: 0 },
      { name: "bucket", weight: 1, algorithm: "token-bucket", limit: 10 },
    ],
  });
  expect(book.checks({ user: "42" }, undefined)).toMatchObject([
    { key: "{user=42}:per-user:b", plan: { variant: "bucket", policy: { stored: "token-bucket", capacity: 10 } } },
  ]);
  expect(book.checks({ user: "acme" }, undefined)).toMatchObject([
    { plan: { policy: { capacity: 5000, amount: 1, scaleMs: 12 } } },
  ]);
});

test("a colocation attribute becomes the hash tag if the request has it", () => {
  const book = bookOf({ ...perUser, colocate: "tenant" });
  expect(book.checks({ user: "42", tenant: "t:1" }, undefined)[0]!.key).toBe("{tenant=t%3a1}:per-user:user=42:p");
  expect(book.checks({ user: "42" }, undefined)[0]!.key).toBe("{user=42}:per-user:p");
});

test("a request's own cost wins over the rule's number, and an attribute over both", () => {
  const book = bookOf(
    { ...perUser, id: "plain" },
    { ...perUser, id: "two", cost: 2 },
    { ...perUser, id: "tokens", cost: { attribute: "tokens" } },
  );
  const costs = (attributes: Attributes, cost?: number): number[] =>
    book.checks(attributes, cost).map((check) => check.cost);
  expect(costs({ user: "42" })).toEqual([1, 2, 1]);
  expect(costs({ user: "42", tokens: 30 })).toEqual([1, 2, 30]);
  expect(costs({ user: "42", tokens: "30" }, 5)).toEqual([5, 5, 30]);
  expect(costs({ user: "42", tokens: 30 }, 0)).toEqual([0, 0, 0]);
});

test.each([Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY, 2 ** 53])("a cost of %d is refused", (cost) => {
  expect(refusalOf(() => bookOf(perUser).checks({ user: "42" }, cost))).toBe(
    `invalid-request cost: expected a whole number of at least 0, got ${cost}`,
  );
});

test.each([
  ["", '""'],
  ["x", '"x"'],
  ["1.5", '"1.5"'],
  ["0x10", '"0x10"'],
  ["-3", '"-3"'],
  [-3, '"-3"'],
  [true, '"true"'],
  ["9007199254740992", '"9007199254740992"'],
])("a cost attribute of %j is refused", (tokens, shown) => {
  const book = bookOf({ ...perUser, cost: { attribute: "tokens" } });
  expect(refusalOf(() => book.checks({ user: "42", tokens }, undefined))).toBe(
    `invalid-request attributes.tokens: expected a whole number of at least 0, got ${shown}`,
  );
});

test.each([
  [null, "null"],
  [Number.NaN, "NaN"],
  [Number.NEGATIVE_INFINITY, "-Infinity"],
  [["a"], '["a"]'],
  [{ a: 1 }, '{"a":1}'],
  [10n, "10n"],
  [Symbol("s"), "a symbol"],
])("an attribute that a rule uses must be text, a number or a boolean, not %s", (value, shown) => {
  const book = bookOf(perUser);
  expect(refusalOf(() => book.checks({ user: value } as never, undefined))).toBe(
    `invalid-request attributes.user: expected a string, a finite number or a boolean, got ${shown}`,
  );
  expect(refusalOf(() => book.checks({ user: "42", other: value } as never, undefined))).toBe("none");
});

test.each([null, undefined, "user", ["user"]])("attributes that are %j are refused", (attributes) => {
  expect(refusalOf(() => bookOf(perUser).checks(attributes as never, undefined))).toMatch(
    /^invalid-request attributes: expected an object, got /,
  );
});

test("a refused request leaks nothing into the next", () => {
  const book = bookOf(perUser, { ...perUser, id: "b", key: ["region"] });
  expect(() => book.checks({ user: "42", region: null } as never, undefined)).toThrow(SluiceError);
  expect(idsFor(book, { region: "eu" })).toEqual(["b"]);
});

test("only a request's own attributes count", () => {
  const book = bookOf(
    { ...perUser, id: "a", key: ["constructor"] },
    { ...perUser, id: "b", key: ["__proto__"] },
    { ...perUser, id: "c", key: ["user"] },
  );
  expect(idsFor(book, {})).toEqual([]);
  expect(idsFor(book, Object.create({ user: "inherited" }))).toEqual([]);
  expect(book.checks(JSON.parse('{"__proto__": "x", "constructor": "y"}'), undefined).map(({ key }) => key)).toEqual([
    "{constructor=y}:a:p",
    "{__proto__=x}:b:p",
  ]);
});

test("keysOf lists every form in which a rule may have stored a key", () => {
  const book = bookOf({
    ...perUser,
    mode: "off",
    candidate: { algorithm: "gcra" },
    overrides: [{ match: { user: "x" }, storage: "sorted-set" }],
    variants: [
      { name: "a", weight: 1 },
      { name: "b", weight: 1, algorithm: "token-bucket" },
    ],
  });
  expect(book.keysOf("per-user", { user: 42 })).toEqual([
    "{user=42}:per-user:p",
    "{user=42}:per-user:z",
    "{user=42}:per-user:b",
    "{user=42}:per-user:G",
  ]);
});

test("keysOf refuses an unknown rule and a missing key attribute", () => {
  const book = bookOf(perUser);
  expect(refusalOf(() => book.keysOf("x", {}))).toBe('unknown-rule rule: expected the id of a rule in force, got "x"');
  expect(refusalOf(() => book.keysOf("per-user", {}))).toBe(
    "invalid-request attributes.user: expected a value, for per-user counts by it, got nothing",
  );
});

test("explain reports for every rule whether it applies and why", () => {
  const book = bookOf(
    { ...perUser, id: "off", mode: "off" },
    { ...perUser, id: "tier", match: { tier: "free" } },
    { ...perUser, id: "method", match: { method: ["GET", "*"] } },
    { ...perUser, id: "region", key: ["region"] },
    { ...perUser, id: "all" },
    {
      ...perUser,
      id: "paths",
      match: { path: "/v1/**" },
      overrides: [
        { match: { user: "no" }, limit: 1 },
        { match: { user: "42" }, limit: 2 },
      ],
      variants: [{ name: "only", weight: 1 }],
    },
  );
  expect(book.explain({ user: "42", tier: "pro", path: "/v1/x" })).toEqual([
    { rule: "off", matched: false, why: "mode is off" },
    { rule: "tier", matched: false, why: 'tier: expected "free", got "pro"' },
    { rule: "method", matched: false, why: 'method: expected "GET" or any value, got nothing' },
    { rule: "region", matched: false, why: "key attribute region is absent" },
    { rule: "all", matched: true, why: "applies to every request that has user", key: "{user=42}:all:p" },
    {
      rule: "paths",
      matched: true,
      why: "all conditions hold: path; overrides[1] changes the numbers",
      key: "{user=42}:paths:p",
      override: 1,
      variant: "only",
    },
  ]);
});

test("rules of every failure policy carry it into their checks", () => {
  const rules = (["allow", "deny", "local"] as const).map((onStoreFailure) => ({
    ...perUser,
    id: onStoreFailure,
    onStoreFailure,
  }));
  const checks = bookOf(...rules).checks({ user: "1" }, undefined);
  expect(checks.map(({ plan }) => plan.onStoreFailure)).toEqual(["allow", "deny", "local"]);
});

test("a plan is made once, not at every request", () => {
  const book = bookOf({ ...perUser, overrides: [{ match: { user: "x" }, limit: 1 }] } satisfies Rule | object);
  expect(book.checks({ user: "x" }, undefined)[0]!.plan).toBe(book.checks({ user: "x" }, undefined)[0]!.plan);
});

test("an explanation lists all rules that apply and a hundred of the others, and looks at no more", () => {
  const others = Array.from({ length: 5_000 }, (_, i) => ({ ...perUser, id: `other-${i}`, match: { tier: `t${i}` } }));
  const rules = parseRules([perUser, { ...perUser, id: "off", mode: "off" }, ...others, { ...perUser, id: "last" }]);
  let reads = 0;
  const counted = new Proxy(rules, {
    get: (target, name) => {
      if (/^\d+$/.test(String(name))) reads++;
      return Reflect.get(target, name);
    },
  });
  const book = compileRuleBook(counted, 1);
  reads = 0;
  const explained = book.explain({ user: "42", tier: "t4000" });
  expect(explained.filter(({ matched }) => matched).map(({ rule }) => rule)).toEqual([
    "per-user",
    "other-4000",
    "last",
  ]);
  expect(explained.slice(0, 3).map(({ rule, why }) => ({ rule, why }))).toEqual([
    { rule: "per-user", why: "applies to every request that has user" },
    { rule: "off", why: "mode is off" },
    { rule: "other-0", why: 'tier: expected "t0", got "t4000"' },
  ]);
  expect(explained).toHaveLength(103);
  expect(reads).toBe(101);
});
