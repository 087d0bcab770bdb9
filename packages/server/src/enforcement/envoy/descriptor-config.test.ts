import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { readConfigFolder } from "./config-folder.js";
import { parseDomain } from "./descriptor-config.js";
import { fitsWildcard, LimitTree } from "./limit-tree.js";

const domainOf = (text: string) => {
  const outcome = parseDomain(text);
  if ("mistakes" in outcome) throw new Error(outcome.mistakes.join("\n"));
  return outcome.domain;
};

test("what control planes emit is taken: null limits, upper-case units, empty values, a name at the top", () => {
  const { descriptors } = domainOf(`
name: emitted
domain: d
descriptors:
  - { key: a, value: "", rate_limit: null, detailed_metric: true, value_to_metric: true, metadata: { any: [thing] } }
  - { key: b, rate_limit: { unit: MINUTE, requests_per_unit: 4294967295 } }
  - { key: port, value: 8080, rate_limit: { unit: week, requests_per_unit: 1 } }
`);
  expect(descriptors.map(({ key, value, limit }) => [key, value, limit?.unit])).toEqual([
    ["a", "", undefined],
    ["b", "", "minute"],
    ["port", "8080", "week"],
  ]);
});

test.each([
  ["an unknown key at the top", "domain: d\nratelimits: []", "ratelimits: unknown key"],
  [
    "an unknown key of a descriptor",
    "domain: d\ndescriptors: [{ key: a, ratelimit: {} }]",
    "descriptors[0].ratelimit: unknown key",
  ],
  [
    "an unknown key of a limit",
    "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, per: 1 } }]",
    "descriptors[0].rate_limit.per: unknown key",
  ],
  ["a key that is no text", "domain: d\n1: x", "1: unknown key"],
  ["a list of texts", "domain: d\ndescriptors: [a, b]", "descriptors[0]: expected names with values"],
  ["no domain", "descriptors: []", "domain: expected a name"],
  ["an empty key", 'domain: d\ndescriptors: [{ key: "" }]', "descriptors[0].key: expected a name"],
  ["no key", "domain: d\ndescriptors: [{ value: x }]", "descriptors[0].key: expected a name"],
  [
    "the same key and value twice",
    "domain: d\ndescriptors: [{ key: a, value: x }, { key: a, value: x }]",
    "descriptors[1]: duplicate descriptor a",
  ],
  [
    "a bad unit",
    "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: fortnight, requests_per_unit: 1 } }]",
    "rate_limit.unit: expected one of second",
  ],
  [
    "no unit",
    "domain: d\ndescriptors: [{ key: a, rate_limit: { requests_per_unit: 1 } }]",
    "rate_limit.unit: expected one of",
  ],
  [
    "a unit beside unlimited",
    "domain: d\ndescriptors: [{ key: a, rate_limit: { unlimited: true, unit: day } }]",
    "expected no unit beside unlimited",
  ],
  [
    "an empty name in replaces",
    'domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 1, replaces: [{ name: "" }] } }]',
    "replaces[0].name: expected a name",
  ],
  [
    "a limit that replaces itself",
    "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 1, name: n, replaces: [{ name: n }] } }]",
    "a limit cannot replace itself",
  ],
  [
    "share_threshold without a wildcard",
    "domain: d\ndescriptors: [{ key: a, value: x, share_threshold: true }]",
    "share_threshold: expected a value with a wildcard",
  ],
  [
    "a limit below 0",
    "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: -1 } }]",
    "requests_per_unit: expected a whole number",
  ],
  ["a key of YAML twice", "domain: d\ndomain: e", "unique"],
  ["no YAML", "domain: [", ""],
  [
    "an alias bomb",
    `a: &a [x,x,x,x,x,x,x,x,x]\n${[..."bcdefghij"].map((n, i) => `${n}: &${n} [${Array(9).fill(`*${"abcdefghij"[i]}`).join(",")}]`).join("\n")}`,
    "",
  ],
])("%s is refused with its place", (_what, text, message) => {
  const outcome = parseDomain(text);
  expect(outcome).toHaveProperty("mistakes");
  expect((outcome as { mistakes: string[] }).mistakes.join("\n")).toContain(message);
});

test("all mistakes of a file are told at once", () => {
  const outcome = parseDomain("domain: ''\ndescriptors: [{ key: '' }, { key: a, rate_limit: { unit: x } }]");
  expect((outcome as { mistakes: string[] }).mistakes).toHaveLength(3);
});

describe("wildcards", () => {
  test.each([
    ["foo*", "foobar", true],
    ["foo*", "foo", true],
    ["*bar", "foobar", true],
    ["f*b*r", "fooXbarr", true],
    ["f*b*r", "fooXba", false],
    ["*", "", true],
    ["a*a", "a", false],
    ["a.c*", "abc", false],
  ])("%s on %s: %s", (pattern, value, fits) => {
    expect(fitsWildcard(pattern, value)).toBe(fits);
  });

  test("a hostile pattern and value cost no more than their lengths' product", () => {
    const startedMs = performance.now();
    expect(fitsWildcard(`${"*a".repeat(50)}*b`, "a".repeat(10_000))).toBe(false);
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  test("are tried in the order of the file, after exact values and before the bare key", () => {
    const tree = new LimitTree([
      domainOf(`
domain: d
descriptors:
  - { key: k, rate_limit: { unit: day, requests_per_unit: 1, name: bare } }
  - { key: k, value: "a*", rate_limit: { unit: day, requests_per_unit: 1, name: first } }
  - { key: k, value: "ab*", rate_limit: { unit: day, requests_per_unit: 1, name: second } }
  - { key: k, value: "abc", rate_limit: { unit: day, requests_per_unit: 1, name: exact } }
`),
    ]);
    const name = (value: string) => tree.find("d", [{ key: "k", value }])?.placed.limit.name;
    expect(["abc", "abd", "b"].map(name)).toEqual(["exact", "first", "bare"]);
  });
});

test("the limits of examples/envoy are read without a mistake", () => {
  const folder = fileURLToPath(new URL("../../../../../examples/envoy/limits", import.meta.url));
  expect(readConfigFolder(folder).limits.length).toBeGreaterThan(0);
});
