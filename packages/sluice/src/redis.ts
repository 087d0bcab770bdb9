/** `sluice/redis`: the store for a fleet. */

export type { TlsOptions } from "./store/redis/client.js";
export type { RedisClient } from "./store/redis/connection.js";
export type { IoredisLike } from "./store/redis/ioredis.js";
export type { NodeRedisLike } from "./store/redis/node-redis.js";
export { RedisStore, redisStore } from "./store/redis/redis-store.js";
export type { RedisStoreOptions } from "./store/redis/store-options.js";
export { parseRedisUrl, type RedisTarget } from "./store/redis/url.js";
