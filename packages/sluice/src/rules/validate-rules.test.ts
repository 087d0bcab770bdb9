import { expect, test } from "vitest";
import { SluiceError } from "../errors.js";
import { parseRules, validateRules } from "./validate-rules.js";

/** The example of the rule reference, field for field. */
const documented = {
  id: "api-per-user",
  description: "Free tier, per user",
  match: { path: "/v1/**", method: ["GET", "POST"], tier: "free", ip: "10.0.0.0/8" },
  key: ["user"],
  algorithm: "rolling-window",
  limit: 100,
  window: "1m",
  minInterval: "50ms",
  storage: "sorted-set",
  cost: 1,
  mode: "enforce",
  onStoreFailure: "allow",
  overrides: [{ match: { user: "acme" }, limit: 5000 }],
  candidate: { limit: 50 },
  variants: [
    { name: "control", weight: 50 },
    { name: "bucket", weight: 50, algorithm: "token-bucket", limit: 100, window: "1m" },
  ],
  colocate: "tenant",
};

const good = { id: "a", key: ["user"], algorithm: "rolling-window", limit: 10, window: "1s" };
const bucket = { id: "a", key: ["user"], algorithm: "token-bucket", limit: 10 };
const fixed = { id: "a", key: ["user"], algorithm: "fixed-window", limit: 10, window: "1d" };

function linesOf(document: unknown): string[] {
  const outcome = validateRules(document);
  return "mistakes" in outcome ? outcome.mistakes.map(({ path, message }) => `${path}: ${message}`) : [];
}

test("the documented example is valid as it is", () => {
  expect(validateRules({ rules: [documented] })).toEqual({ rules: [documented] });
});

test("a bare list is a document", () => {
  expect(validateRules([good])).toEqual({ rules: [good] });
  expect(validateRules([])).toEqual({ rules: [] });
});

const WHOLE = "a whole number from 1 to 9007199254740991";
const LENGTHS = 'a duration such as "1h", or a list of 1 to 8 that grows such as ["1m", "10m", "1h"]';
const WHOLE_OR_NONE = "a whole number from 0 to 9007199254740991";
const NAME = "an attribute name (1 to 128 letters, digits or _ $ @ . : / -)";

/** One rule, wrong in one way, and the mistake it leads to. */
const badRules: [string, unknown, string][] = [
  ["a rule that is text", "x", 'rules[0]: expected a rule {id, key, algorithm, limit, ...}, got "x"'],
  ["a rule that is null", null, "rules[0]: expected a rule {id, key, algorithm, limit, ...}, got null"],
  ["a rule that is a Map", new Map(), "rules[0]: expected a rule {id, key, algorithm, limit, ...}, got {}"],
  ["a misspelled field", { ...good, windw: "1s" }, 'rules[0].windw: unknown field, did you mean "window"?'],
  [
    "a field in another case",
    { ...good, mininterval: "1ms" },
    'rules[0].mininterval: unknown field, did you mean "minInterval"?',
  ],
  ["an unknown field", { ...good, priority: 1 }, "rules[0].priority: unknown field"],
  ["a field named constructor", { ...good, constructor: 1 }, "rules[0].constructor: unknown field"],
  [
    "a field named __proto__",
    JSON.parse('{"id":"a","key":[],"algorithm":"gcra","limit":1,"window":"1s","__proto__":{"mode":"off"}}'),
    "rules[0].__proto__: unknown field",
  ],
  ["a field that is no name", { ...good, "my field": 1 }, 'rules[0]["my field"]: unknown field'],
  [
    "an id in capitals",
    { ...good, id: "Api" },
    'rules[0].id: expected an id of 1 to 64 characters a-z 0-9 - _ . that begins with a letter or digit, got "Api"',
  ],
  [
    "no id",
    { ...good, id: undefined },
    "rules[0].id: expected an id of 1 to 64 characters a-z 0-9 - _ . that begins with a letter or digit, got nothing",
  ],
  [
    "a description that is a number",
    { ...good, description: 5 },
    "rules[0].description: expected a text of at most 1000 characters, got 5",
  ],
  [
    "a tag with a space",
    { ...good, tags: ["team web"] },
    'rules[0].tags[0]: expected a tag of 1 to 32 characters a-z 0-9 - _ . :, got "team web"',
  ],
  [
    "no key",
    { ...good, key: undefined },
    "rules[0].key: expected a list of attribute names ([] = one counter for all), got nothing",
  ],
  [
    "a key that is text",
    { ...good, key: "user" },
    'rules[0].key: expected a list of attribute names ([] = one counter for all), got "user"',
  ],
  ["an empty key name", { ...good, key: [""] }, `rules[0].key[0]: expected ${NAME}, got ""`],
  ["a key name with a space", { ...good, key: ["user", "a b"] }, `rules[0].key[1]: expected ${NAME}, got "a b"`],
  [
    "a key name twice",
    { ...good, key: ["user", "user"] },
    'rules[0].key[1]: expected each attribute once, got "user" again',
  ],
  ["too many key names", { ...good, key: [..."abcdefghi"] }, "rules[0].key: expected at most 8, got 9"],
  [
    "a match that is a list",
    { ...good, match: [] },
    "rules[0].match: expected an object of attributes and values, got []",
  ],
  [
    "a match value that is an object",
    { ...good, match: { tier: {} } },
    "rules[0].match.tier: expected a string of at most 256 characters, a number or a boolean, got {}",
  ],
  [
    "a match value that is null",
    { ...good, match: { tier: ["x", null] } },
    "rules[0].match.tier[1]: expected a string of at most 256 characters, a number or a boolean, got null",
  ],
  [
    "a match value that is undefined",
    { ...good, match: { tier: undefined } },
    "rules[0].match.tier: expected a string of at most 256 characters, a number or a boolean, got nothing",
  ],
  [
    "an empty list of values",
    { ...good, match: { tier: [] } },
    "rules[0].match.tier: expected at least one value, got []",
  ],
  [
    "a list of too many values",
    { ...good, match: { tier: Array.from({ length: 1001 }, String) } },
    "rules[0].match.tier: expected at most 1000, got 1001",
  ],
  [
    "too many conditions",
    { ...good, match: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`a${i}`, 1])) },
    "rules[0].match: expected at most 16 attributes, got 17",
  ],
  ["a bad attribute name in match", { ...good, match: { "": "x" } }, `rules[0].match[""]: expected ${NAME}, got ""`],
  [
    "a CIDR out of range",
    { ...good, match: { ip: "10.0.0.0/33" } },
    'rules[0].match.ip: expected an address or a CIDR such as "10.0.0.0/8", or "*", got "10.0.0.0/33"',
  ],
  [
    "a glob for ip",
    { ...good, match: { ip: ["10.0.0.1", "10.*"] } },
    'rules[0].match.ip[1]: expected an address or a CIDR such as "10.0.0.0/8", or "*", got "10.*"',
  ],
  [
    "an unknown algorithm",
    { ...good, algorithm: "leaky" },
    'rules[0].algorithm: expected one of "token-bucket", "fixed-window", "rolling-window", "sliding-counter", "gcra", "concurrency", "load-shedding", got "leaky"',
  ],
  ["no limit", { ...good, limit: undefined }, `rules[0].limit: expected ${WHOLE_OR_NONE}, got nothing`],
  ["a limit below 0", { ...good, limit: -1 }, `rules[0].limit: expected ${WHOLE_OR_NONE}, got -1`],
  ["a limit with a fraction", { ...good, limit: 1.5 }, `rules[0].limit: expected ${WHOLE_OR_NONE}, got 1.5`],
  [
    "a limit above 2^53-1",
    { ...good, limit: 2 ** 53 },
    `rules[0].limit: expected ${WHOLE_OR_NONE}, got 9007199254740992`,
  ],
  ["a limit that is text", { ...good, limit: "10" }, `rules[0].limit: expected ${WHOLE_OR_NONE}, got "10"`],
  ["a limit that is no number", { ...good, limit: Number.NaN }, `rules[0].limit: expected ${WHOLE_OR_NONE}, got NaN`],
  ["a negative window", { ...good, window: "-5" }, 'rules[0].window: expected a duration such as "30s", got "-5"'],
  ["a window of 0", { ...good, window: "0s" }, 'rules[0].window: expected a duration such as "30s", got "0s"'],
  [
    "a window below 1 ms",
    { ...good, window: "0.5ms" },
    'rules[0].window: expected a duration such as "30s", got "0.5ms"',
  ],
  ["a window that is a number", { ...good, window: 60 }, 'rules[0].window: expected a duration such as "30s", got 60'],
  [
    "a window beyond ten years",
    { ...good, window: "4000d" },
    'rules[0].window: expected a duration such as "30s", got "4000d"',
  ],
  ["no window", { ...good, window: undefined }, 'rules[0].window: expected a duration such as "30s", got nothing'],
  [
    "a minInterval above the window",
    { ...good, minInterval: "2s" },
    'rules[0].minInterval: expected a minInterval of at most the window, got "2s" in "1s"',
  ],
  [
    "an unknown storage",
    { ...good, storage: "list" },
    'rules[0].storage: expected one of "sorted-set", "packed", got "list"',
  ],
  [
    "a packed limit beyond 22 bits",
    { ...good, storage: "packed", limit: 4_194_304 },
    "rules[0].limit: expected at most 4194303, or storage: sorted-set, got 4194304",
  ],
  ["a burst on a rolling window", { ...good, burst: 5 }, "rules[0].burst: rolling-window has no burst (only gcra)"],
  [
    "a storage on a bucket",
    { ...bucket, window: "1s", storage: "packed" },
    "rules[0].storage: token-bucket has no storage (only rolling-window)",
  ],
  [
    "a window on concurrency",
    { ...good, algorithm: "concurrency" },
    "rules[0].window: concurrency has no window (only token-bucket, fixed-window, rolling-window, sliding-counter, gcra)",
  ],
  [
    "a ttl that is a number",
    { id: "a", key: [], algorithm: "concurrency", limit: 1, ttl: 30 },
    'rules[0].ttl: expected a duration such as "30s", got 30',
  ],
  ["a blockFor of 0", { ...good, blockFor: "0s" }, `rules[0].blockFor: expected ${LENGTHS}, got "0s"`],
  ["a blockFor of no length", { ...good, blockFor: [] }, `rules[0].blockFor: expected ${LENGTHS}, got []`],
  [
    "a blockFor that shrinks",
    { ...good, blockFor: ["1h", "1m"] },
    `rules[0].blockFor: expected ${LENGTHS}, got ["1h","1m"]`,
  ],
  [
    "a blockFor of nine lengths",
    { ...good, blockFor: Array.from({ length: 9 }, (_, i) => `${i + 1}s`) },
    `rules[0].blockFor: expected ${LENGTHS}, got ["1s","2s","3s","4s","5s","6s","7s","8s","9s"]`,
  ],
  [
    "a blockFor of places",
    { ...good, algorithm: "concurrency", window: undefined, blockFor: "1h" },
    "rules[0].blockFor: concurrency has no blockFor (only token-bucket, fixed-window, rolling-window, sliding-counter, gcra)",
  ],
  [
    "a prefetch that is too short",
    { ...good, prefetch: "4ms" },
    'rules[0].prefetch: expected a duration from "5ms" to "1m", got "4ms"',
  ],
  [
    "a prefetch beside a minInterval",
    { ...good, prefetch: "20ms", minInterval: "1ms" },
    "rules[0].prefetch: expected either prefetch or minInterval, got both: units in hand keep no distance",
  ],
  [
    "a prefetch beyond the window",
    { ...good, window: "10ms", prefetch: "20ms" },
    'rules[0].prefetch: expected a prefetch of at most the window, got "20ms" in "10ms"',
  ],
  [
    "a bucket that refills within its prefetch",
    { ...good, algorithm: "gcra", limit: 1_000, window: "1s", burst: 20, prefetch: "20ms" },
    'rules[0].prefetch: expected a burst above the 20 units that refill in "20ms", got 20',
  ],
  [
    "a prefetch of places",
    { ...good, algorithm: "concurrency", window: undefined, prefetch: "20ms" },
    "rules[0].prefetch: concurrency has no prefetch (only token-bucket, fixed-window, rolling-window, gcra)",
  ],
  [
    "a blockFor beside a prefetch",
    { ...good, prefetch: "20ms", blockFor: "1h" },
    "rules[0].prefetch: expected either prefetch or blockFor, got both: units in hand do not see a block",
  ],
  ["a burst of 0", { ...good, algorithm: "gcra", burst: 0 }, `rules[0].burst: expected ${WHOLE}, got 0`],
  [
    "a bucket that never fills",
    bucket,
    'rules[0].window: expected a duration such as "30s" (or a refill), got nothing',
  ],
  [
    "a bucket filled twice",
    { ...bucket, window: "1s", refill: { amount: 1, every: "1s" } },
    "rules[0].refill: expected either window or refill, got both",
  ],
  [
    "a refill of 0",
    { ...bucket, refill: { amount: 0, every: "1s" } },
    `rules[0].refill.amount: expected ${WHOLE}, got 0`,
  ],
  [
    "a refill that never comes",
    { ...bucket, refill: { amount: 1 } },
    'rules[0].refill.every: expected a duration such as "30s", got nothing',
  ],
  [
    "a refill with an unknown field",
    { ...bucket, refill: { amount: 1, every: "1s", per: 1 } },
    "rules[0].refill.per: unknown field",
  ],
  ["a refill that is a number", { ...bucket, refill: 5 }, "rules[0].refill: expected an object {amount, every}, got 5"],
  [
    "an unknown alignment",
    { ...fixed, align: "utc" },
    'rules[0].align: expected one of "epoch", "calendar", got "utc"',
  ],
  [
    "an unknown time zone",
    { ...fixed, align: "calendar", timezone: "Mars/Base" },
    'rules[0].timezone: expected a time zone such as "Europe/Paris", got "Mars/Base"',
  ],
  [
    "a time zone without a calendar",
    { ...fixed, timezone: "Europe/Paris" },
    "rules[0].timezone: expected align: calendar beside it, got align: epoch",
  ],
  [
    "a calendar window of hours",
    { ...fixed, window: "12h", align: "calendar" },
    'rules[0].window: expected "day" (or "1d"), "week" (or "7d") or "month" where align is calendar, got "12h"',
  ],
  [
    "a month without a calendar",
    { ...fixed, window: "month" },
    'rules[0].window: expected a duration such as "30s", got "month" (which needs align: calendar)',
  ],
  [
    "a month on a rolling window",
    { ...good, window: "month" },
    'rules[0].window: expected a duration such as "30s", got "month" (which needs a fixed-window)',
  ],
  [
    "a negative cost",
    { ...good, cost: -1 },
    "rules[0].cost: expected a whole number from 0 to 9007199254740991, or {attribute: name}, got -1",
  ],
  [
    "a cost without attribute",
    { ...good, cost: {} },
    "rules[0].cost: expected a whole number from 0 to 9007199254740991, or {attribute: name}, got {}",
  ],
  ["an unknown mode", { ...good, mode: "on" }, 'rules[0].mode: expected one of "enforce", "shadow", "off", got "on"'],
  [
    "an unknown failure policy",
    { ...good, onStoreFailure: "open" },
    'rules[0].onStoreFailure: expected one of "local", "allow", "deny", got "open"',
  ],
  ["a bad colocation attribute", { ...good, colocate: "" }, `rules[0].colocate: expected ${NAME}, got ""`],
  [
    "overrides that are an object",
    { ...good, overrides: {} },
    "rules[0].overrides: expected a list of overrides, got {}",
  ],
  [
    "an override without match",
    { ...good, overrides: [{ limit: 5 }] },
    "rules[0].overrides[0].match: expected an object of at least one attribute and its value, got nothing",
  ],
  [
    "an override with an empty match",
    { ...good, overrides: [{ match: {}, limit: 5 }] },
    "rules[0].overrides[0].match: expected an object of at least one attribute and its value, got {}",
  ],
  [
    "an override of the algorithm",
    { ...good, overrides: [{ match: { user: "x" }, algorithm: "gcra" }] },
    "rules[0].overrides[0].algorithm: an override may change the numbers, not the algorithm",
  ],
  [
    "an override of a missing attribute",
    { ...good, overrides: [{ match: { user: "x", region: "eu" }, limit: 5 }] },
    'rules[0].overrides[0].match: expected attributes of the rule\'s key or match, got "region": a counter would have two limits; add it to key or write a rule of its own',
  ],
  [
    "an override that no algorithm of the rule knows",
    { ...good, overrides: [{ match: { user: "x" }, burst: 5 }] },
    "rules[0].overrides[0].burst: rolling-window has no burst (only gcra)",
  ],
  [
    "an override whose window is below the minInterval",
    { ...good, minInterval: "500ms", overrides: [{ match: { user: "x" }, window: "100ms" }] },
    'rules[0].overrides[0].window: expected a minInterval of at most the window, got "500ms" in "100ms"',
  ],
  [
    "an override limit below 0",
    { ...good, overrides: [{ match: { user: "x" }, limit: -1 }] },
    `rules[0].overrides[0].limit: expected ${WHOLE_OR_NONE}, got -1`,
  ],
  [
    "an override with an unknown field",
    { ...good, overrides: [{ match: { user: "x" }, limt: 5 }] },
    'rules[0].overrides[0].limt: unknown field, did you mean "limit"?',
  ],
  [
    "an override that does not add up under a variant",
    {
      ...good,
      window: "1m",
      variants: [{ name: "v", weight: 1, window: "1s" }],
      overrides: [{ match: { user: "x" }, minInterval: "5s" }],
    },
    'rules[0].overrides[0].minInterval: expected a minInterval of at most the window, got "5s" in "1s" (under variants[0])',
  ],
  [
    "a candidate with a foreign field",
    { ...good, candidate: { burst: 5 } },
    "rules[0].candidate.burst: rolling-window has no burst (only gcra)",
  ],
  [
    "a candidate whose numbers are incomplete",
    { id: "a", key: [], algorithm: "concurrency", limit: 5, candidate: { algorithm: "gcra" } },
    'rules[0].candidate.window: expected a duration such as "30s", got nothing',
  ],
  ["a candidate with a match", { ...good, candidate: { match: {} } }, "rules[0].candidate.match: unknown field"],
  [
    "a variant that inherits a window it cannot use",
    { ...fixed, window: "month", align: "calendar", variants: [{ name: "v", weight: 1, algorithm: "gcra" }] },
    'rules[0].variants[0].window: expected a duration such as "30s", got "month" (which needs a fixed-window)',
  ],
  [
    "a variant with a foreign field",
    { ...good, variants: [{ name: "v", weight: 1, algorithm: "token-bucket", minInterval: "1ms" }] },
    "rules[0].variants[0].minInterval: token-bucket has no minInterval (only rolling-window)",
  ],
  ["no variants", { ...good, variants: [] }, "rules[0].variants: expected weights that sum above 0, got 0"],
  [
    "weights that sum to 0",
    { ...good, variants: [{ name: "v", weight: 0 }] },
    "rules[0].variants: expected weights that sum above 0, got 0",
  ],
  [
    "a negative weight",
    {
      ...good,
      variants: [
        { name: "v", weight: -1 },
        { name: "w", weight: 2 },
      ],
    },
    "rules[0].variants[0].weight: expected a number from 0 to 1000000, got -1",
  ],
  [
    "a variant without a name",
    { ...good, variants: [{ weight: 1 }] },
    "rules[0].variants[0].name: expected a name of 1 to 64 letters, digits or - _ ., got nothing",
  ],
  [
    "a variant name twice",
    {
      ...good,
      variants: [
        { name: "v", weight: 1 },
        { name: "v", weight: 1 },
      ],
    },
    'rules[0].variants[1].name: expected a unique name, got "v", which rules[0].variants[0] has',
  ],
];

test.each(badRules)("%s is refused with its path", (_, rule, line) => {
  expect(linesOf([rule])).toEqual([line]);
});

test.each([
  ["text", "x", 'document: expected an object {rules: [...]}, or a list of rules, got "x"'],
  ["nothing", undefined, "document: expected an object {rules: [...]}, or a list of rules, got nothing"],
  ["an empty object", {}, "rules: expected a list of rules, got nothing"],
  ["rules of null", { rules: null }, "rules: expected a list of rules, got null"],
  ["a second field", { rules: [], version: 2 }, "version: unknown field"],
  ["two rules of one id", [good, good], 'rules[1].id: expected a unique id, got "a", which rules[0] has'],
])("a document of %s is refused with its path", (_, document, line) => {
  expect(linesOf(document)).toEqual([line]);
});

test("all mistakes of a document are reported at once", () => {
  const lines = linesOf({
    rules: [{ ...good, limit: -1, windw: 1 }, good, { ...good, id: "c", window: "-5", minInterval: 5, cost: -1 }],
  });
  expect(lines).toEqual([
    `rules[0].limit: expected ${WHOLE_OR_NONE}, got -1`,
    'rules[0].windw: unknown field, did you mean "window"?',
    'rules[2].window: expected a duration such as "30s", got "-5"',
    'rules[2].minInterval: expected a duration such as "30s", got 5',
    "rules[2].cost: expected a whole number from 0 to 9007199254740991, or {attribute: name}, got -1",
    'rules[1].id: expected a unique id, got "a", which rules[0] has',
  ]);
});

test("parseRules throws one error that lists every mistake, one per line", () => {
  const broken = [{ ...good, limit: -1, windw: 1 }];
  const error = catchError(() => parseRules(broken));
  expect(error).toBeInstanceOf(SluiceError);
  expect(error.code).toBe("invalid-rules");
  expect(error.message.split("\n")).toEqual(linesOf(broken));
  expect(error.mistakes).toHaveLength(2);
});

function catchError(run: () => unknown): SluiceError {
  try {
    run();
  } catch (error) {
    return error as SluiceError;
  }
  throw new Error("nothing was thrown");
}

test("long values are truncated in messages", () => {
  const [line] = linesOf([{ ...good, mode: "x".repeat(1000) }]);
  expect(line!.length).toBeLessThan(160);
  expect(line).toMatch(/x…$/);
});

test("a circular or endless value is refused without harm", () => {
  const circular: Record<string, unknown> = { ...good };
  circular.description = circular;
  expect(linesOf([circular])).toEqual([
    'rules[0].description: expected a text of at most 1000 characters, got {"id":"a","key":["user"],"algorithm":"rolling-window","limit":10,"window":"1s",…',
  ]);
});

test("attributes with names that every object has are ordinary attributes", () => {
  const rule = JSON.parse(
    '{"id":"a","match":{"__proto__":"x","constructor":"y"},"key":["toString"],"algorithm":"gcra","limit":1,"window":"1s"}',
  );
  const outcome = validateRules([rule]);
  expect("rules" in outcome && Object.keys(outcome.rules[0]!.match!)).toEqual(["__proto__", "constructor"]);
  expect(({} as Record<string, unknown>).x).toBeUndefined();
});

test("what was validated cannot be changed from outside afterwards", () => {
  const document = { rules: [structuredClone(documented)] };
  const rules = parseRules(document);
  document.rules[0]!.overrides[0]!.limit = 0;
  expect(rules[0]!.overrides![0]!.limit).toBe(5000);
});

test.each([
  [
    "a variant of another algorithm inherits what fits it",
    { ...good, minInterval: "5ms", storage: "packed", variants: [{ name: "v", weight: 1, algorithm: "token-bucket" }] },
  ],
  [
    "an override may use a field that only a variant knows",
    {
      ...good,
      variants: [{ name: "v", weight: 1, algorithm: "gcra" }],
      overrides: [{ match: { user: "x" }, burst: 5 }],
    },
  ],
  [
    "a candidate may replace a window by a refill",
    { ...bucket, window: "1s", candidate: { refill: { amount: 1, every: "1s" } } },
  ],
  [
    "a calendar window may be written as days",
    { ...fixed, window: "7d", align: "calendar", timezone: "America/Sao_Paulo" },
  ],
  [
    "a variant may go back to epoch windows",
    { ...fixed, align: "calendar", timezone: "UTC", variants: [{ name: "v", weight: 1, align: "epoch" }] },
  ],
  ["a rule may count everything together", { ...good, key: [] }],
  ["a match may ask for an empty string, a number or a boolean", { ...good, match: { a: "", b: 5, c: true } }],
  [
    "an override may name an attribute of the match",
    { ...good, match: { tier: ["a", "b"] }, overrides: [{ match: { tier: "b" }, limit: 5 }] },
  ],
  ["fields that are undefined are absent", { ...good, mode: undefined, window: "1s", whatever: undefined }],
])("%s", (_, rule) => {
  expect(linesOf([rule])).toEqual([]);
});

const manyFields = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`lmit${i}`, i]));

test("an object with more fields than any should have is refused as a whole, and not inspected", () => {
  const outcome = validateRules([
    { id: "r", key: [], algorithm: "gcra", limit: 1, window: "1s", ...manyFields(200_000) },
  ]);
  expect(outcome).toEqual({
    mistakes: [{ path: "rules[0]", message: "expected at most 100 fields, got 200005" }],
  });
});

test("of very many mistakes the first hundred are listed, and how many more there are", () => {
  const rules = Array.from({ length: 5_000 }, () => ({ id: "R", key: [], algorithm: "gcra", limit: -1, window: "1s" }));
  const outcome = validateRules(rules) as { mistakes: { path: string; message: string }[] };
  expect(outcome.mistakes).toHaveLength(101);
  // Each rule: a wrong id, a wrong limit, and (but for the first) an id that another has.
  expect(outcome.mistakes.at(-1)).toEqual({ path: "document", message: `and ${3 * 5_000 - 1 - 100} more mistakes` });
});

test("a guess at the intended name is made only for names of a usual length", () => {
  const mistakesOf = (name: string) =>
    (
      validateRules([{ id: "r", key: [], algorithm: "gcra", limit: 1, window: "1s", [name]: 1 }]) as {
        mistakes: object[];
      }
    ).mistakes;
  expect(mistakesOf("minIntervall")).toEqual([
    { path: "rules[0].minIntervall", message: 'unknown field, did you mean "minInterval"?' },
  ]);
  expect(JSON.stringify(mistakesOf("l".repeat(100_000)))).not.toContain("did you mean");
});

test("a wrong value of any size or depth is shown in one line", () => {
  let deep: unknown = 1;
  for (let i = 0; i < 100_000; i++) deep = [deep];
  const wide = Array.from({ length: 1_000 }, () => manyFields(100));
  for (const limit of [deep, wide, { a: wide }, "x".repeat(1_000_000)]) {
    const { mistakes } = validateRules([{ id: "r", key: [], algorithm: "gcra", limit, window: "1s" }]) as {
      mistakes: { message: string }[];
    };
    expect(mistakes).toHaveLength(1);
    expect(mistakes[0]!.message.length).toBeLessThan(200);
  }
});

test("a rule outside a list, and a file of envoyproxy/ratelimit, are recognised", () => {
  const messagesOf = (input: unknown): string[] =>
    (validateRules(input) as { mistakes: { path: string; message: string }[] }).mistakes.map(
      ({ path, message }) => `${path}: ${message}`,
    );
  expect(messagesOf({ ...good })).toContainEqual(
    "id: a field of a rule, not of the document: put the rule in a list, rules: [{ id: … }]",
  );
  expect(messagesOf({ domain: "shop", descriptors: [] })).toContainEqual(
    expect.stringMatching(/^descriptors: a field of envoyproxy\/ratelimit: `sluice migrate`/),
  );
});
