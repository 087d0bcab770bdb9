import { expect, test } from "vitest";
import { type Entry, findEntries, keyEntry, typedKey } from "./palette-entries.js";

const entries: readonly Entry[] = [
  { kind: "Page", label: "Overview", to: "/" },
  { kind: "Page", label: "Top keys", to: "/top-keys" },
  { kind: "Page", label: "Explain a key", to: "/keys" },
  { kind: "Rule", label: "monkey-business", to: "/rules/monkey-business" },
  { kind: "Rule", label: "login", about: "Guesses of a key or password", to: "/rules/login" },
  { kind: "Rule", label: "keys-of-tenants", to: "/rules/keys-of-tenants" },
];
const found = (typed: string): string[] => findEntries(entries, typed).map(({ label }) => label);

test("labels that start with the text come first, then matching words, then other parts, then descriptions", () => {
  expect(found("key")).toEqual(["keys-of-tenants", "Top keys", "Explain a key", "monkey-business", "login"]);
});

test("every word must match, in any order and case", () => {
  expect(found("KEY a explain")).toEqual(["Explain a key"]);
  expect(found("password login")).toEqual(["login"]);
  expect(found("login nothing")).toEqual([]);
});

test("an empty query lists entries in order, at most twelve", () => {
  expect(found("  ")).toEqual(entries.map(({ label }) => label));
  const many = Array.from({ length: 5_000 }, (_, i): Entry => ({ kind: "Rule", label: `rule-${i}`, to: "/" }));
  expect(findEntries(many, "rule")).toHaveLength(12);
  expect(findEntries(many, "rule-4999").map(({ label }) => label)).toEqual(["rule-4999"]);
});

test("attributes lead to the key, and invisible characters are escaped", () => {
  expect(typedKey(" user=42 from=a=b ")).toEqual({ user: "42", from: "a=b" });
  expect([typedKey(""), typedKey("user"), typedKey("user= x"), typedKey("=x")]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(keyEntry({ user: "a\u202eb", from: "x" })).toEqual({
    kind: "Key",
    label: "user=a\\u202eb from=x",
    to: "/keys?user=a%E2%80%AEb&attribute%3Afrom=x",
  });
});
