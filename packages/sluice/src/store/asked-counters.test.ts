import { expect, test } from "vitest";
import type { Check } from "../check.js";
import type { Rule } from "../rules/rule.js";
import { compileRuleBook } from "../rules/rule-book.js";
import { askedCounters, isOthers, isRepeat, isRepeatOf } from "./asked-counters.js";

const perUser: Rule = { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 5, window: "1h" };
const all: Rule = { ...perUser, id: "all", key: [] };
interface Asked {
  readonly rulesVersion: number;
  readonly checks: readonly Check[];
  readonly versionIsLocal?: boolean;
}
const asked = (rulesVersion: number, ...rules: Rule[]): Asked => ({
  rulesVersion,
  checks: compileRuleBook(rules, rulesVersion).checks({ user: "ann", path: "/x" }, undefined),
});
const local = (...rules: Rule[]): Asked => ({ ...asked(1, ...rules), versionIsLocal: true });
const first = asked(1, perUser, all);

test.each<[string, Asked, boolean]>([
  ["the same rules", asked(1, perUser, all), true],
  ["in another order", asked(1, all, perUser), true],
  ["with other numbers", asked(1, { ...perUser, limit: 9 }, all), true],
  ["with a candidate", asked(1, { ...perUser, candidate: { limit: 2 } }, all), true],
  ["with another algorithm", asked(1, { ...perUser, algorithm: "token-bucket" } as Rule, all), true],
  ["one rule less", asked(1, perUser), false],
  ["one rule more", asked(1, perUser, all, { ...all, id: "more" }), false],
  ["another key", asked(1, { ...perUser, key: ["path"] }, all), false],
  ["another colocation", asked(1, { ...perUser, colocate: "path" }, all), false],
  ["one rule less, after an edit", asked(2, perUser), true],
  ["one rule less, before an edit", asked(0, perUser), true],
  ["another key, after an edit", asked(2, { ...perUser, key: ["path"] }), true],
  ["no rule that was asked first, after an edit", asked(2, { ...perUser, id: "other" }), false],
  ["one rule less, where each instance counts its own versions", local(perUser), true],
  ["another key, where each instance counts its own versions", local({ ...perUser, key: ["path"] }), true],
  [
    "no rule that was asked first, where each instance counts its own versions",
    local({ ...perUser, id: "other" }),
    false,
  ],
])("a request by %s is a repeat: %#", (_, later, expected) => {
  expect(isRepeat(later, first)).toBe(expected);
  expect(isRepeatOf(askedCounters(later), askedCounters(first))).toBe(expected);
  // A part of a request can tell only if nothing was edited.
  expect(isOthers(later, first)).toBe(!expected && later.rulesVersion === 1 && later.versionIsLocal !== true);
});
