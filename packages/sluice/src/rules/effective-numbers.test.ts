import { expect, test } from "vitest";
import { effectiveNumbers, type NumberLayer } from "./effective-numbers.js";

const merged = (...layers: NumberLayer[]): unknown => JSON.parse(JSON.stringify(effectiveNumbers(layers)));

test("each field comes from the highest layer that sets it", () => {
  expect(merged({ algorithm: "rolling-window", limit: 10, window: "1m", minInterval: "1s" }, {}, { limit: 5 })).toEqual(
    { algorithm: "rolling-window", limit: 5, window: "1m", minInterval: "1s" },
  );
});

test("fields that the algorithm in force does not have are dropped", () => {
  expect(
    merged(
      { algorithm: "rolling-window", limit: 10, window: "1m", minInterval: "1s" },
      { algorithm: "gcra", burst: 3 },
    ),
  ).toEqual({ algorithm: "gcra", limit: 10, window: "1m", burst: 3 });
});

test("in a bucket, window and refill displace each other", () => {
  const refill = { amount: 1, every: "1s" } as const;
  const bucket: NumberLayer = { algorithm: "token-bucket", limit: 10, window: "1m" };
  expect(merged(bucket, { refill })).toEqual({ algorithm: "token-bucket", limit: 10, refill });
  expect(merged(bucket, { refill }, { window: "2m" })).toEqual({ algorithm: "token-bucket", limit: 10, window: "2m" });
});

test("a layer that goes back to epoch windows drops the time zone", () => {
  const daily: NumberLayer = {
    algorithm: "fixed-window",
    limit: 1,
    window: "day",
    align: "calendar",
    timezone: "Europe/Paris",
  };
  expect(merged(daily, { align: "epoch", window: "1m" })).not.toHaveProperty("timezone");
  expect(merged(daily, { limit: 2 })).toHaveProperty("timezone", "Europe/Paris");
});
