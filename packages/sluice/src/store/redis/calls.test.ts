/** Calls through a client that misbehaves: each ends once, as an error of the store, and is reported to the circuit breaker. */
import { expect, test } from "vitest";
import { RedisCalls } from "./calls.js";
import type { RedisConnection } from "./connection.js";

function callsOver(send: RedisConnection["send"]): RedisCalls {
  const connection = {
    state: () => "ready",
    sharded: false,
    nodeOf: () => "",
    isCold: () => false,
    lookAgain: () => undefined,
    connectedAtMonotonicMs: () => 0,
    lastError: () => undefined,
    send,
    close: async () => undefined,
  } as unknown as RedisConnection;
  // No deadline passes: everything ends by itself.
  const options = { prefix: "", deadlineMs: 3_600_000, breakerFailures: 3, breakerIntervalMs: 3_600_000 };
  return new RedisCalls(connection, options);
}

test.each<[string, RedisConnection["send"]]>([
  ["rejects", () => Promise.reject(new Error("broken client"))],
  [
    "throws",
    () => {
      throw new Error("broken client");
    },
  ],
])("a client that %s: three failures open the circuit breaker, and the fourth call is skipped", async (_, send) => {
  let sent = 0;
  const calls = callsOver((...args) => {
    sent++;
    return send(...args);
  });
  for (let i = 0; i < 4; i++) {
    const error = await calls.call("GET", "k").catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "store-unavailable" });
    expect(String(error)).toContain("broken client");
  }
  const { calls: made, errors, spared, breaker } = calls.stats();
  expect({ sent, made, errors, spared, breaker }).toEqual({ sent: 3, made: 3, errors: 3, spared: 1, breaker: "open" });
});

test("a client that returns no promise counts as having answered", async () => {
  const calls = callsOver((() => "7") as unknown as RedisConnection["send"]);
  expect(await calls.call("GET", "k")).toBe("7");
  expect(calls.stats()).toMatchObject({ calls: 1, errors: 0, breaker: "closed" });
});
