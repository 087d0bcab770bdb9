/** `sluice/redis`: the store for a fleet. */

export type { IoredisLike, NodeRedisLike, RedisClient } from "./store/redis-connection.js";
export { RedisStore, type RedisStoreOptions, redisStore } from "./store/redis-store.js";
