/**
 * Refunds that come late, on every store: by the decision and by its id, one rule and several at once. What the refill has paid by then
 * is not given back a second time out of what others charged since.
 */
import { expect, test } from "vitest";
import type { Limiter, Rule } from "../../packages/sluice/src/index.js";
import type { StoreUnderTest } from "./conformance.js";

/** Half full again in five seconds: a busy machine may be late by seconds. In a cluster the two lie in different slots. */
const buckets = [
  { id: "late-bucket", key: ["user"], algorithm: "token-bucket", limit: 100, window: "10s" },
  { id: "late-gcra", key: ["path"], algorithm: "gcra", limit: 100, window: "10s" },
] as const satisfies Rule[];

/** Each waits, and may run beside the others. */
export function lateRefunds(store: StoreUnderTest): void {
  for (const [name, rules] of [
    ["a token bucket", [buckets[0]]],
    ["GCRA", [buckets[1]]],
    ["both in one request", buckets],
  ] as const) {
    test.each(["its decision", "its id"] as const)(`a late refund: ${name}, by %s`, async (by) => {
      const limiter = store.limiter(rules);
      const request = { user: `late ${by}`, path: `/${name}` };
      try {
        const id = by === "its id" ? `late-${store.name}-${name}` : undefined;
        const first = await limiter.check(request, { cost: 50, ...(id && { id }) });
        expect(first.allowed).toBe(true);
        await store.wait(4_000);
        expect((await limiter.check(request, { cost: 30 })).allowed).toBe(true);
        const before = await missing(limiter, request);
        expect(await limiter.refund(id ?? first)).toBe(true);
        // As of the last charge, which is the others': theirs is all there, and some of the first one's may go.
        for (const [i, left] of (await missing(limiter, request)).entries()) {
          expect(left).toBeGreaterThanOrEqual(30);
          expect(left).toBeLessThanOrEqual(before[i]!);
        }
      } finally {
        await limiter.close();
      }
    });
  }
}

export function refundsAtOnce(store: StoreUnderTest): void {
  test("refunds at once give everything back, the newest first or the oldest first", async () => {
    for (const [n, order] of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 2, 0],
    ].entries()) {
      const limiter = store.limiter(buckets.map((rule) => ({ ...rule, window: "365d" })));
      const request = { user: `order ${n}`, path: `/${n}` };
      try {
        const decisions = [];
        for (const cost of [10, 20, 30]) decisions.push(await limiter.check(request, { cost }));
        for (const which of order) expect(await limiter.refund(decisions[which]!)).toBe(true);
        expect((await limiter.peek(request, { cost: 0 })).checks.map(({ remaining }) => remaining)).toEqual([100, 100]);
      } finally {
        await limiter.close();
      }
    }
  });
}

async function missing(limiter: Limiter, request: Record<string, string>): Promise<number[]> {
  const { rules } = await limiter.explain(request);
  return rules.map(({ state }) => state!.missing!);
}
