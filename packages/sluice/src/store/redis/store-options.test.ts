import { expect, test } from "vitest";
import { redisStore } from "./redis-store.js";
import { checkedStoreOptions } from "./store-options.js";

test("omitted options have their defaults", () => {
  expect(checkedStoreOptions({})).toEqual({
    deadlineMs: 50,
    breakerFailures: 3,
    breakerIntervalMs: 500,
    rememberRefusals: true,
    prefix: "",
  });
});

test.each([
  [{ deadlineMs: Number.NaN }, /deadlineMs: expected a number from 1 to 60000, got NaN/],
  [{ deadlineMs: 0 }, /deadlineMs: .* got 0/],
  [{ deadlineMs: "50ms" }, /deadlineMs: .* got 50ms/],
  [{ deadlineMs: Number.POSITIVE_INFINITY }, /deadlineMs: .* got Infinity/],
  [{ breakerFailures: 1.5 }, /breakerFailures: expected a whole number from 1 to 1000, got 1.5/],
  [{ breakerIntervalMs: -1 }, /breakerIntervalMs: .* got -1/],
  [{ rememberRefusals: "no" }, /rememberRefusals: expected true or false, got no/],
  [{ prefix: 5 }, /prefix: expected at most 64 printable characters .* got 5/],
  [{ prefix: "{shop}:" }, /prefix: .* got \{shop\}:/],
  [{ prefix: "shop*" }, /prefix: .* got shop\*/],
  [{ prefix: "my shop:" }, /prefix: .* got my shop:/],
  [{ prefix: "shop:\n" }, /prefix: .* got shop:\n/],
  [{ prefix: "s".repeat(65) }, /prefix: .* got s{65}/],
  [{ tls: "yes" }, /tls: expected an object/],
  [{ deadline: 5 }, /deadline: expected one of deadlineMs, .* got deadline/],
  [null, /options: expected an object, got null/],
])("options %o are refused by name, before a connection is opened", (options, message) => {
  expect(() => redisStore("redis://127.0.0.1:1", options as never)).toThrow(message);
});
