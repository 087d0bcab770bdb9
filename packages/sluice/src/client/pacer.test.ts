import { expect, test } from "vitest";
import { createLimiter } from "../limiter/limiter.js";
import type { Rule } from "../rules/rule.js";
import { virtualClock } from "../testing.js";
import { Pacer } from "./pacer.js";
import type { QuotaSignal } from "./rate-limit-signals.js";

/** One exchange that ends at once. */
function exchange(
  pacer: Pacer,
  nowMs: number,
  signal?: { quota?: number; windowMs?: number; remaining?: number; resetAfterMs?: number },
) {
  pacer.started();
  pacer.ended({ nowMs, signals: signal === undefined ? [] : [{ name: "p", ...signal }], counted: true });
}

test("without any known quota nothing waits", () => {
  const pacer = new Pacer();
  for (let i = 0; i < 100; i++) exchange(pacer, i);
  expect(pacer.waitMs(100)).toBe(0);
});

test("once the quota is spent, the next request goes one window after the first", () => {
  const pacer = new Pacer();
  exchange(pacer, 0, { quota: 2, windowMs: 1000, remaining: 1, resetAfterMs: 1000 });
  expect(pacer.waitMs(100)).toBe(0);
  exchange(pacer, 100, { quota: 2, windowMs: 1000, remaining: 0, resetAfterMs: 1000 });
  expect(pacer.waitMs(200)).toBe(800);
  expect(pacer.waitMs(1000)).toBe(0);
});

test("if others use up the quota, the server's numbers decide", () => {
  const pacer = new Pacer();
  exchange(pacer, 0, { quota: 100, windowMs: 60_000, remaining: 0, resetAfterMs: 30_000 });
  expect(pacer.waitMs(10_000)).toBe(20_000);
  expect(pacer.waitMs(30_000)).toBe(0);
});

test("without a window, the remaining requests are sent and then the reset is awaited", () => {
  const pacer = new Pacer();
  exchange(pacer, 0, { quota: 100, remaining: 2, resetAfterMs: 5000 });
  expect(pacer.waitMs(0)).toBe(0);
  exchange(pacer, 0);
  exchange(pacer, 0);
  expect(pacer.waitMs(0)).toBe(5000);
});

test("a policy with a quota of 0, a deny list, holds up no other request", () => {
  const pacer = new Pacer();
  exchange(pacer, 0, { quota: 0, windowMs: 60_000, remaining: 0, resetAfterMs: 60_000 });
  expect(pacer.waitMs(10)).toBe(0);
  exchange(pacer, 10, { quota: 2, windowMs: 1000, remaining: 0, resetAfterMs: 1000 });
  expect(pacer.waitMs(10)).toBe(990);
});

test.each([4, 2])("a response counts only under the policies that it names (%i left under the other)", (remaining) => {
  const pacer = new Pacer();
  const ask = (nowMs: number, signal: QuotaSignal): void => {
    pacer.started();
    pacer.ended({ nowMs, signals: [signal], counted: true });
  };
  ask(0, { name: "login", quota: 5, windowMs: 3_600_000, remaining, resetAfterMs: 3_600_000 });
  for (let i = 1; i <= 100; i++) {
    expect(pacer.waitMs(i)).toBe(0);
    ask(i, { name: "api", quota: 1_000, windowMs: 60_000, remaining: 1_000 - i, resetAfterMs: 60_000 });
  }
});

test("requests in flight count as sent", () => {
  const pacer = new Pacer();
  exchange(pacer, 0, { quota: 3, windowMs: 1000, remaining: 2, resetAfterMs: 1000 });
  pacer.started();
  pacer.started();
  expect(pacer.waitMs(10)).toBe(990);
});

test.each<Rule["algorithm"]>(["rolling-window", "fixed-window", "token-bucket", "gcra"])(
  "a lone caller under %s is never refused, and loses little of its quota",
  async (algorithm) => {
    const clock = virtualClock();
    const limiter = createLimiter({ clock, rules: [{ id: "p", key: [], algorithm, limit: 5, window: "1s" } as Rule] });
    const pacer = new Pacer();
    const startMs = clock.now();
    let sent = 0;
    while (clock.now() - startMs < 20_000) {
      const waitMs = pacer.waitMs(clock.now());
      if (waitMs > 0) {
        clock.advance(waitMs);
        continue;
      }
      pacer.started();
      const decision = await limiter.check({});
      expect(decision.allowed).toBe(true);
      sent++;
      clock.advance(20);
      const { remaining, resetAfterMs } = decision;
      pacer.ended({
        nowMs: clock.now(),
        counted: true,
        signals: [
          {
            name: "p",
            quota: 5,
            windowMs: 1000,
            remaining: remaining!,
            resetAfterMs: Math.ceil(resetAfterMs / 1000) * 1000,
          },
        ],
      });
    }
    expect(sent).toBeGreaterThan(75);
  },
);
