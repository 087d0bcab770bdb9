import { expect, test } from "vitest";
import type { Policy } from "../../algorithms/policy.js";
import type { Check } from "../../check.js";
import { hashTag } from "../../keys.js";
import type { StoreRequest } from "../store.js";
import { arrange, keepsEntryIds, plainScriptFor, scriptFor } from "./choose-script.js";

const bucket: Policy = { stored: "token-bucket", limit: 1, capacity: 1, amount: 1, scaleMs: 1 };
const sorted: Policy = { stored: "rolling-window", limit: 9_999, windowMs: 1, minIntervalMs: 0 };
const check = (key: string, more: Partial<Check> = {}, policy: Policy = bucket): Check =>
  ({ key, cost: 1, live: -1, plan: { policy }, ...more }) as unknown as Check;
const request = (checks: readonly Check[], more: Partial<StoreRequest> = {}): StoreRequest => ({
  checks,
  charge: true,
  entryId: "",
  id: undefined,
  fingerprint: "",
  rulesVersion: 1,
  ...more,
});

test("a single check to be charged goes to its algorithm's own script, everything else to decide", () => {
  expect(scriptFor(request([check("{a}")]))).toBe("single-b");
  expect(scriptFor(request([check("{a}", {}, sorted)]))).toBe("single-z");
  const others = [
    request([check("{a}"), check("{a}")]),
    request([check("{a}")], { charge: false }),
    request([check("{a}")], { id: "id" }),
    request([check("{a}", { cost: 0 })]),
    request([check("{a}", { charge: true })]),
  ];
  expect(others.map(scriptFor)).toEqual(others.map(() => "decide"));
});

test("some stored forms have a plain script, and some keep an id per entry", () => {
  expect(plainScriptFor(bucket)).toBe("plain-b");
  expect(plainScriptFor({ ...bucket, stored: "gcra" })).toBe("plain-g");
  expect(plainScriptFor({ ...sorted, stored: "fixed-window" } as Policy)).toBe("plain-f");
  expect(plainScriptFor({ ...sorted, stored: "rolling-window-packed" } as Policy)).toBe("plain-p");
  expect(plainScriptFor(sorted)).toBeUndefined();
  expect((["rolling-window", "concurrency", "gcra"] as const).map(keepsEntryIds)).toEqual([true, true, false]);
});

const keysOf = (calls: ReturnType<typeof arrange>): string[] =>
  calls.map(({ script, batch }) => `${script}: ${batch.map((one) => one.request.checks[0]!.key).join(" ")}`);

test("requests for one script share a call; on a cluster only those of one tag do", () => {
  const waiting = ["{a}1", "{b}1", "{a}2"].map((key) => ({ request: request([check(key)]) }));
  const look = { request: request([check("{a}3")], { charge: false }) };
  expect(keysOf(arrange([...waiting, look]))).toEqual(["single-b: {a}1 {b}1 {a}2", "decide: {a}3"]);
  expect(keysOf(arrange(waiting, hashTag))).toEqual(["single-b: {a}1 {a}2", "single-b: {b}1"]);
});

test("a request that is decided separately shares a call only with those for its key", () => {
  const apart = ["{a}1", "{a}2", "{a}1"].map((key) => ({ request: request([check(key)]), endsAtMonotonicMs: 1 }));
  expect(keysOf(arrange(apart, hashTag))).toEqual(["single-b: {a}1 {a}1", "single-b: {a}2"]);
});

test("a call has at most 128 requests, and fewer if they write many entries", () => {
  const many = Array.from({ length: 300 }, (_, i) => ({ request: request([check(`{k${i}}`)]) }));
  expect(arrange(many).map(({ batch }) => batch.length)).toEqual([128, 128, 44]);
  const costly = Array.from({ length: 4 }, (_, i) => ({ request: request([check(`{k${i}}`, { cost: 600 }, sorted)]) }));
  expect(arrange(costly).map(({ batch }) => batch.length)).toEqual([2, 2]);
});
