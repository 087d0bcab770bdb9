/**
 * The peers that count in Redis, each behind one call: `check(key)`. One connection of the same client each, one command a check: that is
 * how they work. All three count in a fixed window.
 */
import FastifyRedisStore from "@fastify/rate-limit/store/RedisStore.js";
import { Redis } from "ioredis";
import { RedisStore as ExpressRedisStore } from "rate-limit-redis";
import { RateLimiterRedis } from "rate-limiter-flexible";

const WINDOW_MS = 60_000;

/** Refusals come as rejections. */
export async function rateLimiterFlexible(url, limit, options = {}) {
  const client = new Redis(url);
  const limiter = new RateLimiterRedis({
    storeClient: client,
    points: limit,
    duration: WINDOW_MS / 1_000,
    ...options,
  });
  return { check: (key) => limiter.consume(key).catch(() => {}), close: () => client.disconnect() };
}

export async function rateLimitRedis(url) {
  const client = new Redis(url);
  const store = new ExpressRedisStore({ sendCommand: (...args) => client.call(...args) });
  await store.init({ windowMs: WINDOW_MS });
  return { check: (key) => store.increment(key), close: () => client.disconnect() };
}

export async function fastifyRateLimit(url, limit) {
  const client = new Redis(url);
  const store = new FastifyRedisStore(false, false, client);
  const check = (key) =>
    new Promise((resolve, reject) => {
      store.incr(key, (error, counted) => (error ? reject(error) : resolve(counted)), WINDOW_MS, limit);
    });
  return { check, close: () => client.disconnect() };
}
