/** Which history an instance keeps: in Redis where its counters live there, else in this process and the data folder. */
import type { Log } from "../../log.js";
import type { History } from "./history.js";
import { MemoryHistory } from "./memory-history.js";
import { RedisHistory } from "./redis-history.js";

export function openHistory(options: { store: string; dataFolder: string; log: Log }): Promise<History> {
  const { store, dataFolder, log } = options;
  return store === "memory" ? MemoryHistory.open({ dataFolder, log }) : Promise.resolve(new RedisHistory(store));
}
