import { expect, test } from "vitest";
import { type Verdict, verdict } from "../algorithms/model.js";
import type { Check } from "../check.js";
import type { CheckMode } from "../decision.js";
import type { StoreReply } from "../store/store.js";
import { asFirstAnswered, joinRecalled, joinRepeated } from "./regional-replies.js";

function checkOf(rule: string, { stored = "pool", mode = "enforce", live = -1 } = {}): Check {
  const plan = { rule, mode: mode as CheckMode, policy: { stored, limit: 10 } } as Check["plan"];
  return { plan, key: `{k}:${rule}:u`, cost: 1, live };
}

const passed = (resetAfterMs: number): Verdict => ({ ...verdict(true, 3, 0, resetAfterMs, undefined), charged: true });
const refusedFor = (retryAfterMs: number): Verdict => verdict(false, 0, retryAfterMs, 5_000, "limit");

function replyTo(checks: readonly Check[], verdicts: readonly Verdict[], entryId = "first"): StoreReply {
  return { nowMs: 1_000, verdicts, guarantee: "atomic", repeated: { entryId, rulesVersion: 1, checks, atMs: 3_000 } };
}

test("a pool's reset below 0 is read as a fetch that was due", () => {
  const { verdicts, guarantee } = asFirstAnswered(replyTo([checkOf("all")], [passed(-1 - 7_000)]));
  expect([verdicts[0], guarantee]).toMatchObject([{ allowed: true, resetAfterMs: 7_000 }, "prefetched"]);
});

test("a pool's refusal without a wait has one, unless another rule refused or the pool's only reports", () => {
  const counter = checkOf("here", { stored: "fixed-window" });
  const answer = (checks: Check[], verdicts: Verdict[]) =>
    asFirstAnswered(replyTo(checks, verdicts)).verdicts.map(({ allowed, retryAfterMs }) => [allowed, retryAfterMs]);
  expect(answer([checkOf("all"), counter], [refusedFor(0), passed(9)])).toEqual([
    [false, 100],
    [true, 0],
  ]);
  expect(answer([checkOf("all"), counter], [refusedFor(0), refusedFor(40)])).toEqual([
    [true, 0],
    [false, 40],
  ]);
  expect(answer([checkOf("all", { mode: "shadow" })], [refusedFor(0)])).toEqual([[true, 0]]);
  expect(answer([checkOf("all")], [refusedFor(70)])).toEqual([[false, 70]]);
});

test("a reply without pools stays as it is", () => {
  const reply = replyTo([checkOf("here", { stored: "fixed-window" })], [refusedFor(0)]);
  expect(asFirstAnswered(reply)).toBe(reply);
});

test("of two stores, each part keeps the checks, the time and the entry name of its first answer", () => {
  const [all, live, candidate] = [checkOf("all"), checkOf("here"), checkOf("here", { mode: "candidate", live: 0 })];
  const atHome = replyTo([all], [passed(1)], "retry of home");
  const here: StoreReply = { nowMs: 2_000, verdicts: [passed(2), passed(3)], guarantee: "prefetched" };
  const parts = [
    { reply: atHome, checks: [checkOf("edited")] },
    { reply: here, checks: [live, candidate] },
  ];
  const joined = joinRepeated(parts, { entryId: "now", rulesVersion: 2 });
  expect(joined).toMatchObject({
    timesMs: [1_000, 2_000, 2_000],
    entryIds: ["retry of home", "now", "now"],
    repeated: { rulesVersion: 2, atMs: 2_000 },
  });
  expect(joined.repeated!.checks.map(({ plan, live }) => [plan.rule, live])).toEqual([
    ["all", -1],
    ["here", -1],
    ["here", 1],
  ]);
});

test("what no store, or only one, remembers is not joined", () => {
  const reply = replyTo([checkOf("all")], [passed(1)]);
  expect([joinRecalled([]), joinRecalled([reply])]).toEqual([undefined, reply]);
  expect(joinRecalled([reply, reply])!.entryIds).toEqual(["first", "first"]);
});
