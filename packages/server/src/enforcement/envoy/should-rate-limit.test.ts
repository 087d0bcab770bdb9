import { createLimiter } from "sluice";
import { expect, test } from "vitest";
import { PlainRequest } from "./decode-request.js";
import type { SpelledResponse } from "./plain-requests.js";
import { codes } from "./rate-limit-messages.js";
import { RequestOverrides } from "./request-overrides.js";
import type { AnswerOptions } from "./respond.js";
import { createShouldRateLimit } from "./should-rate-limit.js";

const answers: AnswerOptions = {
  fields: "standard",
  body: true,
  dynamicMetadata: false,
  shadowMode: false,
  allQuotas: false,
  countsRefused: false,
  failsWithStore: false,
};

test("a value that is too complex to match is over its limit: on an error Envoy would fail open", async () => {
  const rule = { key: [], algorithm: "token-bucket", limit: 5, window: "1m" } as const;
  const limiter = createLimiter({ rules: [{ id: "r", match: { path: `${"**a*".repeat(63)}b` }, ...rule }] });
  const shouldRateLimit = createShouldRateLimit({
    limiter,
    tree: () => undefined,
    lacksLimits: () => false,
    overrides: new RequestOverrides(),
    answers,
    onGivenBack: () => undefined,
  });
  const ask = (value: string, isNegativeHits = false) =>
    shouldRateLimit({
      domain: "shop",
      descriptors: [{ entries: [{ key: "path", value }], isNegativeHits }],
      hitsAddend: 1,
    });
  expect((await ask("/x")).overallCode).toBe(codes.ok);
  const refused = { overallCode: codes.overLimit, statuses: [{ code: codes.overLimit }] };
  expect(await ask("a".repeat(50_000))).toMatchObject(refused);
  expect(await ask("a".repeat(50_000), true)).toMatchObject(refused);
  await limiter.close();
});

test("--region is the region of requests that name none, on the fast path and on the full one", async () => {
  const rule = { key: ["user"], algorithm: "fixed-window", limit: 0, window: "1d" } as const;
  const limiter = createLimiter({ rules: [{ id: "eu", match: { region: "eu" }, ...rule }] });
  const shouldRateLimit = createShouldRateLimit({
    limiter,
    region: "eu",
    tree: () => undefined,
    lacksLimits: () => false,
    overrides: new RequestOverrides(),
    answers,
    onGivenBack: () => undefined,
  });
  const request = (...more: { key: string; value: string }[]): PlainRequest =>
    Object.assign(new PlainRequest(), {
      domain: "shop",
      descriptors: [{ entries: [{ key: "user", value: "a" }, ...more], isNegativeHits: false }],
    });
  const codesOf = async (asked: PlainRequest) => [
    (await shouldRateLimit(asked)).overallCode,
    ((await shouldRateLimit.plain(asked)) as SpelledResponse).allowed,
  ];
  expect(await codesOf(request())).toEqual([codes.overLimit, false]);
  expect(await codesOf(request({ key: "region", value: "us" }))).toEqual([codes.ok, true]);
  await limiter.close();
});
