/** Bytes per key and per entry, with MEMORY USAGE, beside what the paper reckons with. */
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";

const forms = [
  { name: "token bucket", rule: { algorithm: "token-bucket", window: "1h" }, paper: () => 16 },
  { name: "GCRA", rule: { algorithm: "gcra", window: "1h" } },
  { name: "fixed window", rule: { algorithm: "fixed-window", window: "1h" }, paper: () => 16 },
  { name: "sliding counter", rule: { algorithm: "sliding-counter", window: "1h" } },
  {
    name: "rolling window, sorted set",
    rule: { algorithm: "rolling-window", window: "1h", storage: "sorted-set" },
    paper: (limit) => 8 * limit,
  },
  {
    name: "rolling window, packed",
    rule: { algorithm: "rolling-window", window: "1h", storage: "packed" },
    paper: (limit) => 8 * limit,
  },
  { name: "concurrency", rule: { algorithm: "concurrency", ttl: "1h" }, paper: (limit) => 16 * limit },
];

export async function bytesSection(redis) {
  const rows = [];
  for (const limit of [100, 1_000]) {
    for (const { name, rule, paper } of forms) {
      await redis.admin.flushall();
      const limiter = createLimiter({
        store: redisStore(redis.url, { deadlineMs: 10_000 }),
        rules: [{ id: "per-user", key: ["user"], limit, ...rule }],
      });
      // One at a time, as they would come: a batch would allocate its memory at once.
      for (let i = 0; i < limit; i++) await limiter.check({ user: "user-1" });
      await limiter.close();
      const [key] = await redis.admin.keys("sluice:*");
      const bytes = Number(await redis.admin.memory("USAGE", key));
      rows.push({ name, limit, bytes, perEntry: bytes / limit, paper: paper?.(limit) });
    }
  }
  return rows;
}
