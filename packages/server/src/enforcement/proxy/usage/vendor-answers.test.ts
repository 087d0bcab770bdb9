import { createLimiter, type Rule } from "sluice";
import { virtualClock } from "sluice/testing";
import { expect, test } from "vitest";
import { problem } from "../../../http/problem.js";
import { type FieldsForm, spanText, vendorAnswer, vendorError } from "./vendor-answers.js";
import { vendorOf } from "./vendors.js";

const NOW_MS = Date.UTC(2026, 0, 1);
const requests: Rule = { id: "rpm", key: [], algorithm: "fixed-window", limit: 2, window: "1m" };
const tokens: Rule = { ...requests, id: "tpm", limit: 100, cost: { attribute: "tokens" }, unit: "tokens" };
const daily: Rule = { ...tokens, id: "tpd", limit: 1_000, window: "1d" };
const places: Rule = { id: "streams", key: [], algorithm: "concurrency", limit: 5 };

async function answerTo(
  vendor: string,
  form: FieldsForm,
  { rules = [requests, tokens, daily, places], count = 1, cost = 40 } = {},
) {
  const limiter = createLimiter({ rules, clock: virtualClock() });
  let decision = await limiter.check({ tokens: cost });
  for (let i = 1; i < count; i++) decision = await limiter.check({ tokens: cost });
  const ruleOf = limiter.findRule.bind(limiter);
  return vendorAnswer(decision, { vendor: vendorOf(vendor), headers: false, form, ruleOf, nowMs: () => NOW_MS });
}

test("OpenAI's fields: one set per unit, from the tightest rule, none for concurrency limits", async () => {
  expect((await answerTo("openai", "openai")).headers).toEqual({
    "x-ratelimit-limit-requests": "2",
    "x-ratelimit-remaining-requests": "1",
    "x-ratelimit-reset-requests": "1m0s",
    "x-ratelimit-limit-tokens": "100",
    "x-ratelimit-remaining-tokens": "60",
    "x-ratelimit-reset-tokens": "1m0s",
  });
});

test("Anthropic's fields carry the reset time", async () => {
  expect((await answerTo("anthropic", "anthropic", { rules: [tokens] })).headers).toEqual({
    "anthropic-ratelimit-tokens-limit": "100",
    "anthropic-ratelimit-tokens-remaining": "60",
    "anthropic-ratelimit-tokens-reset": "2026-01-01T00:01:00Z",
  });
});

test("off sends none", async () => {
  expect((await answerTo("openai", "off")).headers).toEqual({});
});

test("a refusal in OpenAI's shape names the unit and the wait", async () => {
  const { status, headers, body } = await answerTo("openai", "off", { count: 3 });
  expect([status, headers["Retry-After"], headers["retry-after-ms"], headers["x-should-retry"]]).toEqual([
    429,
    "60",
    "60000",
    undefined,
  ]);
  expect(headers["Content-Type"]).toBe("application/json");
  expect(body).toEqual({
    error: {
      message: expect.stringContaining("is used up. Try again in 60 s."),
      type: expect.stringMatching(/^(requests|tokens)$/),
      param: null,
      code: "rate_limit_exceeded",
    },
  });
});

test("a refusal in Anthropic's shape", async () => {
  expect((await answerTo("anthropic", "off", { count: 3 })).body).toEqual({
    type: "error",
    error: { type: "rate_limit_error", message: expect.stringContaining("Try again in 60 s.") },
  });
});

test("SDKs must not retry if the wait exceeds a minute, or waiting does not help", async () => {
  const hour = await answerTo("openai", "off", { rules: [{ ...requests, limit: 1, window: "1h" }], count: 2 });
  expect([hour.headers["x-should-retry"], hour.headers["Retry-After"]]).toEqual(["false", "3600"]);
  const never = await answerTo("openai", "off", { rules: [tokens], cost: 101 });
  expect([never.status, never.headers["x-should-retry"], never.headers["Retry-After"]]).toEqual([
    429,
    "false",
    undefined,
  ]);
});

test.each([
  ["openai", 400, { error: { message: "m", type: "invalid_request_error", param: null, code: "invalid_call" } }],
  ["anthropic", 400, { type: "error", error: { type: "invalid_request_error", message: "m" } }],
  ["/x", 400, { error: { message: "m", type: "invalid_request_error", param: null, code: "invalid_call" } }],
])("a problem of the proxy's own in the shape of %s", (vendor, _status, body) => {
  expect(vendorError(vendorOf(vendor), problem("invalid-call", "m"))).toEqual(body);
});

test.each([
  ["body-too-large", "request_too_large", "invalid_request_error"],
  ["too-many-bodies", "overloaded_error", "server_error"],
  ["upstream-unreachable", "api_error", "server_error"],
  ["upstream-silent", "timeout_error", "server_error"],
] as const)("%s is %s to Anthropic's clients and %s to OpenAI's", (code, anthropic, openai) => {
  expect(vendorError(vendorOf("anthropic"), problem(code, "m"))).toMatchObject({ error: { type: anthropic } });
  expect(vendorError(vendorOf("openai"), problem(code, "m"))).toMatchObject({ error: { type: openai } });
});

test.each([
  [0, "0ms"],
  [12.2, "13ms"],
  [8_640, "8.64s"],
  [60_000, "1m0s"],
  [360_001, "6m1s"],
  [3_630_000, "1h0m30s"],
])("%d ms are spelled %s", (ms, text) => {
  expect(spanText(ms)).toBe(text);
});
