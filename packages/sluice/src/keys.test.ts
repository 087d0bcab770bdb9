import fc from "fast-check";
import { expect, test } from "vitest";
import {
  colocatedKey,
  counterKey,
  counterKeyEnd,
  KEY_PREFIX,
  readCounterKey,
  requestIdKey,
  ruleOfKey,
  spellValues,
} from "./keys.js";

const plain = counterKeyEnd({ rule: "per-user", stored: "gcra", candidate: false });
const candidate = counterKeyEnd({ rule: "per-user", stored: "gcra", candidate: true });

test.each(["42", "}:evil:g", "a:b:c", "{x}", "x".repeat(500), ""])(
  "the rule is read back from the key of %j",
  (value) => {
    const spelled = spellValues(["user"], [value]);
    expect(ruleOfKey(KEY_PREFIX + counterKey(spelled, plain))).toEqual({ rule: "per-user", candidate: false });
    expect(ruleOfKey(KEY_PREFIX + counterKey(spelled, candidate))).toEqual({ rule: "per-user", candidate: true });
    const colocated = colocatedKey(spellValues(["tenant"], [value]), spelled, plain);
    expect(ruleOfKey(KEY_PREFIX + colocated)).toEqual({ rule: "per-user", candidate: false });
  },
);

test("a key that is not a counter has no rule", () => {
  const record = KEY_PREFIX + requestIdKey("order:7:x", "user=42");
  for (const key of [record, "sluice:1:config:rules", "sluice:2:{*}:r:g", "other", "sluice:1:{*", ""]) {
    expect(ruleOfKey(key), key).toBeUndefined();
  }
});

test("rule and attributes can be read back from a counter's key, whatever bytes they contain", () => {
  const end = counterKeyEnd({ rule: "per-user.v2", stored: "gcra", candidate: false });
  const text = fc.string({ unit: "binary", maxLength: 12 });
  fc.assert(
    fc.property(
      fc.uniqueArray(text, { maxLength: 3 }),
      fc.array(text, { minLength: 3, maxLength: 3 }),
      (names, all) => {
        const values = all.slice(0, names.length);
        const spelled = spellValues(names, values);
        const pairs = names.map((name, i) => [name, values[i]] as const);
        const attributes = spelled.startsWith("#") ? undefined : Object.fromEntries(pairs);
        expect(readCounterKey(counterKey(spelled, end))).toEqual({ rule: "per-user.v2", attributes });
        const colocated = colocatedKey(spellValues(["tenant"], ["a:b}"]), spelled, end);
        expect(readCounterKey(colocated)).toEqual({ rule: "per-user.v2", attributes });
      },
    ),
  );
});

test("long request ids that differ in a lone surrogate have different records", () => {
  const idOf = (end: string): string => "x".repeat(200) + end;
  const ids = ["\ud800", "\ud801", "\udc00", "\ufffd", "%ud800"].map(idOf);
  expect(new Set(ids.map((id) => requestIdKey(id, "t"))).size).toBe(ids.length);
});
