import { expect, test } from "vitest";
import { describeNumbers } from "./describe-rule.js";

test("each algorithm's numbers are described with its own fields", () => {
  const described = [
    { algorithm: "rolling-window", limit: 100, window: "1m" },
    { algorithm: "rolling-window", limit: 100, window: "1m", minInterval: "50ms" },
    { algorithm: "token-bucket", limit: 10, refill: { amount: 2, every: "1s" } },
    { algorithm: "gcra", limit: 10, window: "1s", burst: 3 },
    { algorithm: "concurrency", limit: 5 },
    { algorithm: "concurrency", limit: 5, ttl: "10s" },
    { algorithm: "load-shedding", signal: ["inflight", "event-loop"], limit: "auto" },
    { algorithm: "load-shedding", signal: "inflight", limit: 64 },
    { algorithm: "load-shedding", signal: "reported" },
  ] as const;
  expect(described.map(describeNumbers)).toEqual([
    "100 in 1m",
    "100 in 1m, 50ms apart",
    "10, 2 more every 1s",
    "10 in 1s, 3 at once",
    "5 at once",
    "5 at once, for 10s at most",
    "sheds by inflight and event-loop, places estimated",
    "sheds by inflight, 64 places",
    "sheds by reported",
  ]);
});

test("a candidate that changes only the window leaves the limit out", () => {
  expect(describeNumbers({ window: "2m" })).toBe(" in 2m");
});
