import { createLimiter } from "sluice";
import { expect, test } from "vitest";
import { codes } from "./rate-limit-messages.js";
import { RequestOverrides } from "./request-overrides.js";
import { createShouldRateLimit } from "./should-rate-limit.js";

test("a value that is too complex to match is over its limit: on an error Envoy would fail open", async () => {
  const rule = { key: [], algorithm: "token-bucket", limit: 5, window: "1m" } as const;
  const limiter = createLimiter({ rules: [{ id: "r", match: { path: `${"**a*".repeat(63)}b` }, ...rule }] });
  const shouldRateLimit = createShouldRateLimit({
    limiter,
    tree: () => undefined,
    lacksLimits: () => false,
    overrides: new RequestOverrides(),
    answers: {
      fields: "standard",
      body: true,
      dynamicMetadata: false,
      shadowMode: false,
      allQuotas: false,
      countsRefused: false,
      failsWithStore: false,
    },
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
