import { expect, test } from "vitest";
import { type Verdict, verdict } from "../../../algorithms/model.js";
import type { Check } from "../../../check.js";
import type { StoreReply, StoreRequest } from "../../store.js";
import { groupByTag, joinReplies, splitByKey, splitByTag, undoOf } from "./split-by-tag.js";

const check = (key: string, more: Partial<Check> = {}, mode = "enforce"): Check =>
  ({ key, cost: 2, live: -1, plan: { rule: key, mode, policy: { limit: 10 } }, ...more }) as unknown as Check;
const request = (checks: readonly Check[]): StoreRequest => ({
  checks,
  charge: true,
  entryId: "e",
  id: "id",
  fingerprint: "",
  rulesVersion: 1,
});
const charged = (remaining: number): Verdict => ({ ...verdict(true, remaining, 0, 500, undefined), charged: true });
const refused = (waitMs: number): Verdict => verdict(false, 0, waitMs, 500, "limit");
const reply = (nowMs: number, ...verdicts: Verdict[]): StoreReply => ({ nowMs, verdicts, guarantee: "atomic" });

test("checks are split by tag, and keep their indices; a candidate stays with its live check", () => {
  const parts = splitByTag(request([check("{a}1"), check("{b}1"), check("{a}2"), check("{a}2!", { live: 2 })]));
  expect(parts.map(({ tag, places }) => [tag, places])).toEqual([
    ["a", [0, 2, 3]],
    ["b", [1]],
  ]);
  expect(parts[0]!.request.checks[2]!.live).toBe(1);
});

test("a request of one tag is not copied", () => {
  const whole = request([check("{a}1"), check("{a}2")]);
  expect(splitByTag(whole)[0]!.request).toBe(whole);
});

test("split by key, checks of one key stay together, and the id is handled in the record's own step", () => {
  const parts = splitByKey(request([check("{a}1"), check("{a}2"), check("{a}1")]));
  expect(parts.map(({ places }) => places)).toEqual([[0, 2], [1]]);
  expect(parts.every((part) => part.request.id === undefined)).toBe(true);
});

test("if all parts pass, the reply has every verdict at its index, and nothing is undone", () => {
  const parts = splitByTag(request([check("{a}1"), check("{b}1"), check("{a}2")]));
  const { reply: joined, undos } = joinReplies(parts, [reply(100, charged(8), charged(6)), reply(200, charged(7))]);
  expect(undos).toEqual([]);
  expect(joined).toMatchObject({ nowMs: 100, guarantee: "compensated", timesMs: [100, 200, 100] });
  expect(joined.verdicts.map(({ remaining }) => remaining)).toEqual([8, 7, 6]);
});

test("if one part refuses, the charges of the others are undone, and their verdicts show it", () => {
  const parts = splitByTag(request([check("{a}1"), check("{b}1")]));
  const { reply: joined, undos } = joinReplies(parts, [reply(100, charged(8)), reply(200, refused(30))]);
  expect(undos).toMatchObject([{ charges: [{ atMs: 100, entryId: "e" }], id: "id", attempt: "e", lifeMs: 500 }]);
  expect(joined.verdicts[0]).toMatchObject({ allowed: true, remaining: 10, charged: false });
  expect(joined.verdicts[1]).toMatchObject({ allowed: false, retryAfterMs: 30 });
});

test("a shadow rule's refusal undoes nothing, and a charge stands whichever part refuses", () => {
  const shadow = splitByTag(request([check("{a}1"), check("{b}1", {}, "shadow")]));
  expect(joinReplies(shadow, [reply(1, charged(8)), reply(1, refused(30))]).undos).toEqual([]);
  const charge = splitByTag(request([check("{a}1", { charge: true }), check("{b}1")]));
  expect(joinReplies(charge, [reply(1, charged(8)), reply(1, refused(30))]).undos).toEqual([]);
});

test("a part that was already decided answers with its first checks, and is undone under the first entry id", () => {
  const parts = splitByTag(request([check("{a}1"), check("{b}1")]));
  const repeated = { entryId: "first", rulesVersion: 1, checks: [check("{a}old")], atMs: 900 };
  const { reply: joined, undos } = joinReplies(parts, [
    { ...reply(100, charged(8)), repeated },
    reply(900, refused(30)),
  ]);
  expect(joined.repeated?.checks.map(({ key }) => key)).toEqual(["{a}old", "{b}1"]);
  expect(joined.entryIds).toEqual(["first", "e"]);
  expect(undos[0]).toMatchObject({ charges: [{ entryId: "first" }], attempt: "e" });
});

test("a part that charged nothing needs no undo", () => {
  const [part] = splitByTag(request([check("{a}1")]));
  expect(undoOf(part!, reply(1, refused(5)))).toEqual([]);
});

test("entries are grouped by the tag of their key, in order", () => {
  expect(groupByTag(["{a}1", "{b}1", "{a}2"], (key) => key)).toEqual([["{a}1", "{a}2"], ["{b}1"]]);
});
