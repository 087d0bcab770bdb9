/** An instance whose own clock is wrong: the server's clock decides. */
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test, vi } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";

const tokens: Rule = {
  id: "tokens",
  key: ["org"],
  algorithm: "token-bucket",
  limit: 1_000,
  window: "1h",
  cost: { attribute: "t" },
  estimate: { default: 200, ttl: "1s" },
};

describe.skipIf(whyMissing("redis"))("an instance whose clock is a minute behind", () => {
  test("reports a reservation that has expired", async () => {
    await using redis = await startRedis();
    const now = Date.now.bind(Date);
    vi.spyOn(Date, "now").mockImplementation(() => now() - 60_000);
    const limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 60_000 }), rules: [tokens] });
    try {
      const expired: string[] = [];
      limiter.on("expired", (id) => expired.push(id));
      const { reservation } = await limiter.check({ org: "a" });
      const { reservation: settled } = await limiter.check({ org: "a" });
      await limiter.settle(settled!.id, { t: 1 });
      await vi.waitFor(() => expect(limiter.reservationStats().open).toBe(0), { timeout: 10_000 });
      await vi.waitFor(() => expect(expired).toEqual([reservation!.id]), { timeout: 2_000 });
      expect(limiter.reservationStats().expired).toBe(1);
    } finally {
      vi.restoreAllMocks();
      await limiter.close();
    }
  });
});
