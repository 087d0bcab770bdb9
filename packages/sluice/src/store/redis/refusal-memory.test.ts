import { expect, test } from "vitest";
import { verdict } from "../../algorithms/model.js";
import type { Rule } from "../../rules/rule.js";
import { compileRuleBook } from "../../rules/rule-book.js";
import type { StoreReply, StoreRequest } from "../store.js";
import { RefusalMemory } from "./refusal-memory.js";

const rule: Rule = { id: "r", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1h" };
const book = compileRuleBook([rule], 1);
const requestOf = (more: Partial<StoreRequest> = {}, user = "ann", cost = 1): StoreRequest => ({
  checks: book.checks({ user }, cost),
  charge: true,
  entryId: "",
  id: undefined,
  rulesVersion: 1,
  fingerprint: "",
  ...more,
});
const refused = (waitMs: number): StoreReply => ({
  nowMs: 1_000_000,
  verdicts: [verdict(false, 0, waitMs, waitMs, "limit")],
  guarantee: "atomic",
});

const at = (sentMonotonicMs: number, answeredMonotonicMs = sentMonotonicMs) => ({
  sentMonotonicMs,
  answeredMonotonicMs,
});

test("a refusal is repeated until its end, with the remaining wait, and not a moment longer", () => {
  const memory = new RefusalMemory(() => Number.NEGATIVE_INFINITY);
  memory.remember(requestOf(), refused(700), at(5_000));
  expect(memory.recall(requestOf(), 5_250.9)).toMatchObject({
    nowMs: 1_000_250,
    verdicts: [{ allowed: false, retryAfterMs: 450 }],
  });
  expect(memory.recall(requestOf(), 5_699.9)).toMatchObject({ verdicts: [{ retryAfterMs: 1 }] });
  expect(memory.recall(requestOf(), 5_700)).toBeUndefined();
});

test("a refusal is kept until its end while the frees of other instances are known; otherwise for a second", () => {
  let heardMs = 5_000;
  const memory = new RefusalMemory(() => heardMs);
  memory.remember(requestOf(), refused(3_600_000), at(5_000));
  expect(memory.recall(requestOf(), 6_500)).toBeUndefined();
  heardMs = 3_604_000;
  expect(memory.recall(requestOf(), 3_604_900)).toMatchObject({ verdicts: [{ retryAfterMs: 100 }] });
  expect(memory.recall(requestOf(), 3_605_000)).toBeUndefined();
});

test("what may change meanwhile is asked again after a second: several rules, another cost, something left, a minimum interval", () => {
  const several = compileRuleBook([rule, { ...rule, id: "s", limit: 9 }], 1).checks({ user: "ann" }, 1);
  const cases: [StoreRequest, StoreReply][] = [
    [
      requestOf({ checks: several }),
      { ...refused(9_000), verdicts: [...refused(9_000).verdicts, verdict(true, 8, 0, 9_000, undefined)] },
    ],
    [requestOf({}, "ann", 2), refused(9_000)],
    [requestOf(), { ...refused(9_000), verdicts: [verdict(false, 1, 9_000, 9_000, "limit")] }],
    [requestOf(), { ...refused(9_000), verdicts: [verdict(false, 0, 9_000, 9_000, "min-interval")] }],
  ];
  for (const [request, reply] of cases) {
    const memory = new RefusalMemory((nowMs) => nowMs);
    memory.remember(request, reply, at(0));
    expect(memory.recall(request, 999)).toBeDefined();
    expect(memory.recall(request, 1_001)).toBeUndefined();
  }
});

test("a limit that moved under the same plan is a different one", () => {
  const memory = new RefusalMemory((nowMs) => nowMs);
  const request = requestOf();
  const { plan } = request.checks[0] as unknown as { plan: { policy: object } };
  memory.remember(request, refused(9_000), at(0));
  const { policy } = plan;
  plan.policy = { ...policy };
  expect(memory.recall(request, 1)).toBeUndefined();
  plan.policy = policy;
  expect(memory.recall(request, 1)).toBeDefined();
});

test("all refusals can be forgotten at once", () => {
  const memory = new RefusalMemory((nowMs) => nowMs);
  memory.remember(requestOf(), refused(9_000), at(0));
  memory.forget(undefined, 1);
  expect(memory.recall(requestOf(), 1)).toBeUndefined();
});

test("Redis is asked again after a second if nothing is known of what other instances give back", () => {
  const memory = new RefusalMemory(() => Number.NEGATIVE_INFINITY);
  memory.remember(requestOf(), refused(3_600_000), at(5_000));
  expect(memory.recall(requestOf(), 5_999)).toBeDefined();
  expect(memory.recall(requestOf(), 6_000)).toBeUndefined();
});

test("only the same request is refused from the cache: not another key, cost or rule, nor a look, nor one with an id", () => {
  const memory = new RefusalMemory(() => Number.NEGATIVE_INFINITY);
  memory.remember(requestOf(), refused(700), at(0));
  const edited = compileRuleBook([{ ...rule, limit: 9 }], 2).checks({ user: "ann" }, 1);
  for (const request of [
    requestOf({}, "bob"),
    requestOf({}, "ann", 2),
    requestOf({ charge: false }),
    requestOf({ id: "x" }),
    requestOf({ checks: edited }),
  ]) {
    expect(memory.recall(request, 1)).toBeUndefined();
  }
  expect(memory.recall(requestOf(), 1)).toBeDefined();
});

test("a pass, a full concurrency rule and a rule with a candidate are not cached", () => {
  const memory = new RefusalMemory(() => Number.NEGATIVE_INFINITY);
  memory.remember(requestOf(), { ...refused(700), verdicts: [verdict(true, 1, 0, 5, undefined)] }, at(0));
  memory.remember(requestOf(), { ...refused(700), verdicts: [verdict(false, 0, 700, 700, "concurrency")] }, at(0));
  const both = compileRuleBook([{ ...rule, candidate: { limit: 5 } }], 1).checks({ user: "ann" }, 1);
  const verdicts = [verdict(false, 0, 700, 700, "limit"), verdict(true, 3, 0, 700, undefined)];
  memory.remember(requestOf({ checks: both }), { ...refused(700), verdicts }, at(0));
  expect(memory.recall(requestOf(), 1)).toBeUndefined();
  expect(memory.recall(requestOf({ checks: both }), 1)).toBeUndefined();
});

test("what is given back or reset is forgotten", () => {
  const memory = new RefusalMemory(() => Number.NEGATIVE_INFINITY);
  memory.remember(requestOf(), refused(700), at(0));
  memory.forget([requestOf().checks[0]!.key], 1);
  expect(memory.recall(requestOf(), 1)).toBeUndefined();
});

test("the reported wait counts from the answer, the end from the sending: neither is too early", () => {
  const memory = new RefusalMemory((nowMs) => nowMs);
  memory.remember(requestOf(), refused(700), at(5_000, 5_040));
  expect(memory.recall(requestOf(), 5_030)).toMatchObject({ verdicts: [{ retryAfterMs: 700, resetAfterMs: 700 }] });
  expect(memory.recall(requestOf(), 5_440)).toMatchObject({ verdicts: [{ retryAfterMs: 300, resetAfterMs: 300 }] });
  expect(memory.recall(requestOf(), 5_700)).toBeUndefined();
});

test("a refusal that was in flight while its counter was freed is not cached; one of a later request is", () => {
  const { key } = requestOf().checks[0]!;
  for (const freed of [[key], undefined]) {
    const memory = new RefusalMemory((nowMs) => nowMs);
    memory.forget(freed, 10);
    memory.remember(requestOf(), refused(700), at(9, 11));
    expect(memory.recall(requestOf(), 12)).toBeUndefined();
    memory.remember(requestOf(), refused(700), at(11, 12));
    expect(memory.recall(requestOf(), 13)).toBeDefined();
  }
});
