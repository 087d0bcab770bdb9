import { expect, test } from "vitest";
import { checkOptions, type LimiterOptions } from "./limiter-options.js";

test.each([
  [undefined, "createLimiter: expected { rules, store? }"],
  [null, "createLimiter: expected { rules, store? }"],
  [
    { rules: [], stroe: 1 },
    "stroe: unknown option; known are rules, store, globalStore, region, rulesVersion, clock, instances",
  ],
  [{ rules: [], store: "redis://x" }, "store: expected a store such as redisStore"],
  [{ rules: [], store: { decide() {} }, clock: Date }, "clock: only the memory store takes one"],
  [{ rules: [], instances: 0 }, "instances: expected a whole number of at least 1, got 0"],
  [{ rules: [], instances: 1.5 }, "instances: expected a whole number of at least 1, got 1.5"],
])("%j is refused", (options, message) => {
  expect(() => checkOptions(options as LimiterOptions)).toThrow(message);
});

test("known options pass", () => {
  expect(() => checkOptions({ rules: [], clock: Date, instances: 3, rulesVersion: 7 })).not.toThrow();
});
