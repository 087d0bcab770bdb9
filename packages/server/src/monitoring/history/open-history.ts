/** Opens an instance's histories: the fleet's in Redis if the counters are there, otherwise one in this process and the data folder. */
import type { Fleet, Instance } from "../../instance/instance.js";
import { redisKeys } from "../../instance/redis-keys.js";
import type { History } from "./history.js";
import { MemoryHistory } from "./memory-history.js";
import { RedisHistory } from "./redis-history.js";

interface Options {
  readonly fleet: Fleet;
  readonly instance: Pick<Instance, "settings" | "log">;
}

export async function openHistory({ fleet, instance: { settings, log } }: Options): Promise<History> {
  if (fleet.redis !== undefined) return new RedisHistory(fleet.redis, redisKeys(settings["store-prefix"]));
  return await MemoryHistory.open({ dataFolder: settings["data-folder"], log });
}

/** Enough for the busiest rules: this is for outages, not for reports. */
const OWN_SERIES = 200;

/** This instance's own history, as a fallback for the one in Redis; undefined if the history is in this process anyway. */
export async function openOwnHistory({ fleet, instance: { log } }: Options): Promise<History | undefined> {
  if (fleet.redis === undefined) return undefined;
  return await MemoryHistory.open({ dataFolder: undefined, log, mostSeries: OWN_SERIES });
}
