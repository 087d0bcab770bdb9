import { expect, test } from "vitest";
import { compileRuleBook } from "../../rules/rule-book.js";
import type { SoleRequest } from "../../sole-request.js";
import { CounterMap } from "./counter-map.js";
import { MemoryCounters } from "./memory-counters.js";
import { MemorySole } from "./memory-sole.js";

const NOW_MS = 1_000_000;

function sole(algorithm: "token-bucket" | "rolling-window") {
  let nowMs = NOW_MS;
  const states = new CounterMap(1e6);
  const counters = new MemoryCounters(states, () => undefined);
  const way = new MemorySole({ clock: { now: () => nowMs }, states, counters });
  const book = compileRuleBook([{ id: "r", key: ["user"], algorithm, limit: 2, window: "1s" }], 1);
  const request = (user: string): SoleRequest => book.sole!.requestOf({ user })!;
  return {
    way,
    states,
    request,
    remaining: (user: string) => way.decideSole(request(user))?.verdict,
    at: (ms: number) => {
      nowMs = ms;
    },
  };
}

test.each(["token-bucket", "rolling-window"] as const)(
  "%s: a request of one check is charged until its counter is used up",
  (algorithm) => {
    const { remaining, states } = sole(algorithm);
    expect([remaining("a"), remaining("a"), remaining("a")]).toMatchObject([
      { allowed: true, remaining: 1 },
      { allowed: true, remaining: 0 },
      { allowed: false, remaining: 0 },
    ]);
    expect(remaining("b")).toMatchObject({ allowed: true, remaining: 1 });
    expect(states.count).toBe(2);
  },
);

test("a cached request finds its counter again after the store has dropped it", () => {
  const { way, states, request } = sole("token-bucket");
  const kept = request("a");
  way.decideSole(kept);
  states.delete(kept.check.key);
  expect(way.decideSole(kept)?.verdict).toMatchObject({ allowed: true, remaining: 1 });
});

test("the fast path is closed until the instant that the store sets, and open after it", () => {
  const { way, remaining, at } = sole("token-bucket");
  way.closedUntilMs = NOW_MS;
  expect(remaining("a")).toBeUndefined();
  at(NOW_MS + 1);
  expect(remaining("a")).toMatchObject({ allowed: true });
});
