import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { readConfigFolder } from "./config-folder.js";
import { checkedDomains } from "./config-tree.js";
import { parseDomains } from "./descriptor-config.js";

const domainOf = (text: string) => {
  const outcome = parseDomains(text);
  if ("mistakes" in outcome) throw new Error(outcome.mistakes.join("\n"));
  return outcome.domains[0]!;
};

test("the output of control planes is accepted: null limits, upper-case units, empty values, a name at the top", () => {
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
  const outcome = parseDomains(text);
  expect(outcome).toHaveProperty("mistakes");
  expect((outcome as { mistakes: string[] }).mistakes.join("\n")).toContain(message);
});

/** Each as a plain scalar, with what envoyproxy/ratelimit reads; undefined if it refuses the file. */
test.each([
  ["00123", "00123"],
  ["0x1F", "0x1F"],
  ["True", "True"],
  ["yes", "yes"],
  ["1_000", "1_000"],
  ["-5", "-5"],
  ["1e3", "1e3"],
  ["2026-01-01", "2026-01-01"],
  ["~", ""],
  ["null", ""],
  ['"1.0"', "1.0"],
  ["'08'", "08"],
  ["1.0", undefined],
  ["08", undefined],
  [".5", undefined],
  ["1e+3", undefined],
  [".inf", undefined],
  ["[a]", undefined],
])("the value %s is the text %s", (written, text) => {
  const outcome = parseDomains(`domain: d\ndescriptors:\n  - key: k\n    value: ${written}`);
  expect("domains" in outcome ? outcome.domains[0]!.descriptors[0]!.value : undefined).toBe(text);
});

test.each([
  ["010", 8],
  ["0x1F", 31],
  ["0b11", 3],
  ["1_000", 1000],
  ["4294967295", 4294967295],
  ["4294967296", undefined],
  ["1.0", undefined],
  ["'5'", undefined],
  ["five", undefined],
])("requests_per_unit: %s is %s", (written, count) => {
  const outcome = parseDomains(
    `domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: day, requests_per_unit: ${written} }`,
  );
  expect("domains" in outcome ? outcome.domains[0]!.descriptors[0]!.limit!.requestsPerUnit : undefined).toBe(count);
});

test("flags accept YAML 1.1's words for true and false", () => {
  const { descriptors } = domainOf(
    "domain: d\ndescriptors: [{ key: a, shadow_mode: yes }, { key: b, quota_mode: On }, { key: c, shadow_mode: off }]",
  );
  expect(descriptors.map(({ shadow, quota }) => [shadow, quota])).toEqual([
    [true, false],
    [false, true],
    [false, false],
  ]);
});

test("merge keys join mappings; own keys win, then the first of several", () => {
  const { descriptors } = domainOf(`
domain: d
descriptors:
  - &base { key: a, shadow_mode: true, rate_limit: &numbers { unit: hour, requests_per_unit: 5 } }
  - { <<: *base, key: b }
  - { key: c, rate_limit: { <<: [{ unit: day }, *numbers], requests_per_unit: 7 } }
  - { key: "<<" , value: plain }
`);
  expect(descriptors.map(({ key, shadow, limit }) => [key, shadow, limit?.unit, limit?.requestsPerUnit])).toEqual([
    ["a", true, "hour", 5],
    ["b", true, "hour", 5],
    ["c", false, "day", 7],
    ["<<", false, undefined, undefined],
  ]);
});

test("each document of a file is a domain", () => {
  const outcome = parseDomains("domain: a\n---\ndomain: b\ndescriptors: [{ key: k }]\n---\n");
  expect("domains" in outcome && outcome.domains.map(({ domain }) => domain)).toEqual(["a", "b"]);
  expect(parseDomains("domain: a\n---\ndomains: b")).toEqual({
    mistakes: ["document 2: domains: unknown key", "document 2: domain: expected a name that is not empty"],
  });
  expect(parseDomains("")).toHaveProperty("mistakes");
});

describe("several files of one domain", () => {
  const given = (...texts: string[]) => texts.map((text, i) => ({ domain: domainOf(text), from: `${"abc"[i]}.yaml` }));
  const one = "domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]";
  const other = "domain: d\ndescriptors: [{ key: l, rate_limit: { unit: day, requests_per_unit: 1 } }, { key: m }]";

  test("are a mistake, unless they may be merged", () => {
    expect(checkedDomains(given(one, other), { merge: false })).toEqual({
      mistakes: ['b.yaml: domain: duplicate domain "d", also in a.yaml; --envoy-merge-domains joins them'],
    });
    const outcome = checkedDomains(given(one, other), { merge: true });
    expect("domains" in outcome && outcome.domains[0]!.descriptors.map(({ key }) => key)).toEqual(["k", "l", "m"]);
  });

  test("may not have the same descriptor", () => {
    expect(checkedDomains(given(other, one, one), { merge: true })).toEqual({
      mistakes: ["c.yaml: descriptors[0]: duplicate descriptor k, also in a.yaml, b.yaml"],
    });
  });
});

test("too many limits for the memory are a mistake", () => {
  const [limited] = domainOf("domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day } }]").descriptors;
  const descriptors = Array.from({ length: 250_001 }, (_, i) => ({ ...limited!, value: `v${i}` }));
  expect(checkedDomains([{ domain: { domain: "d", descriptors }, from: "a" }], { merge: false })).toEqual({
    mistakes: ["descriptors: expected at most 250000 limits in all, got 250001"],
  });
});

test("all mistakes of a file are reported at once", () => {
  const outcome = parseDomains("domain: ''\ndescriptors: [{ key: '' }, { key: a, rate_limit: { unit: x } }]");
  expect((outcome as { mistakes: string[] }).mistakes).toHaveLength(3);
});

test("the limits of examples/envoy are read without a mistake", () => {
  const folder = fileURLToPath(new URL("../../../../../examples/envoy/limits", import.meta.url));
  expect(readConfigFolder({ folder, merge: false }).domains.length).toBeGreaterThan(0);
});
