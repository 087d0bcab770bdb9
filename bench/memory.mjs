/** The memory store: checks a second on one core, against rate-limiter-flexible's own memory limiter. */
import { RateLimiterMemory } from "rate-limiter-flexible";
import { createLimiter } from "sluice";
import { interleaved } from "./measure.mjs";

const users = Array.from({ length: 1_000 }, (_, i) => `user-${i}`);

export async function memorySection({ repetitions, quick }) {
  const count = quick ? 200_000 : 1_000_000;
  const limiterOf = (algorithm) =>
    createLimiter({ rules: [{ id: "r", key: ["user"], algorithm, limit: 1_000_000, window: "1h" }] });
  const peer = new RateLimiterMemory({ points: 1_000_000, duration: 3_600 });
  const run = (decide) => async () => {
    const cpu = process.cpuUsage();
    const startMs = performance.now();
    for (let i = 0; i < count; i++) await decide(users[i % users.length]);
    const { user, system } = process.cpuUsage(cpu);
    return { perSecond: (count / (performance.now() - startMs)) * 1000, nodeUs: (user + system) / count };
  };
  const contestants = { "rate-limiter-flexible, fixed window": run((user) => peer.consume(user)) };
  for (const algorithm of ["token-bucket", "gcra", "fixed-window", "sliding-counter", "rolling-window"]) {
    const limiter = limiterOf(algorithm);
    contestants[`sluice, ${algorithm}`] = run((user) => limiter.check({ user }));
  }
  return {
    title: "Memory store, one core",
    base: "rate-limiter-flexible, fixed window",
    results: await interleaved(contestants, repetitions),
  };
}
