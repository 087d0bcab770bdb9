/**
 * What an instance keeps in Redis: counters, the fleet's shared state, and the shared state of all regions. In: settings that name a Redis.
 */
import type { Store } from "sluice";
import { type RedisStoreOptions, redisStore } from "sluice/redis";
import type { Settings } from "../settings/settings.js";
import { type RedisClient, redisClient } from "./redis-client.js";
import { redisKeys } from "./redis-keys.js";
import { RedisSharedState } from "./redis-shared-state.js";
import type { SharedState } from "./shared-state.js";
import { storeTls } from "./store-tls.js";

export function storeOnRedis(settings: Settings): Store {
  const { store, "store-deadline": deadlineMs } = settings;
  return redisStore(store, { deadlineMs, ...placeOf(settings) });
}

export function globalStoreOnRedis(settings: Settings, url: string): Store {
  return redisStore(url, { deadlineMs: settings["global-store-deadline"], ...placeOf(settings) });
}

export function joinOnRedis(settings: Settings): { shared: SharedState; redis: RedisClient } {
  const redis = redisClient(settings.store, { tls: storeTls(settings) });
  return { shared: new RedisSharedState(redis, redisKeys(settings["store-prefix"])), redis };
}

/** Shared state of the instances of all regions, in the global store. */
export function homeOnRedis(settings: Settings): SharedState {
  const { "global-store": url, "global-store-deadline": timeoutMs } = settings;
  const client = redisClient(url!, { tls: storeTls(settings), timeoutMs });
  return new RedisSharedState(client, redisKeys(settings["store-prefix"]));
}

/** Connection options for both stores, and this fleet's key prefix. */
function placeOf(settings: Settings): Pick<RedisStoreOptions, "tls" | "prefix"> {
  return { tls: storeTls(settings), prefix: settings["store-prefix"] ?? "" };
}
