/** Which histories an instance keeps: one of all instances, in Redis where the counters live there, else in this process and the data folder. */
import type { Log } from "../../log.js";
import type { History } from "./history.js";
import { MemoryHistory } from "./memory-history.js";
import { RedisHistory } from "./redis-history.js";

export function openHistory(options: { store: string; dataFolder: string; log: Log }): Promise<History> {
  const { store, dataFolder, log } = options;
  return store === "memory" ? MemoryHistory.open({ dataFolder, log }) : Promise.resolve(new RedisHistory(store));
}

/** Of many rules the busiest are told apart: this is for an outage, not for a report. */
const OWN_SERIES = 200;

/** What this instance counts, for when the history in Redis cannot be reached; undefined where the history lies in this process anyway. */
export function openOwnHistory({ store, log }: { store: string; log: Log }): Promise<History | undefined> {
  return store === "memory"
    ? Promise.resolve(undefined)
    : MemoryHistory.open({ dataFolder: undefined, log, mostSeries: OWN_SERIES });
}
