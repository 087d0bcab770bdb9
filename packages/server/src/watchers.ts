/**
 * What watches beside the path of requests, put together from the settings: the store's view.
 * In: the limiter and its store. Out: what the admin API reads. Nothing here is waited for by a check.
 */
import type { Limiter, Store } from "sluice";
import { callSummary } from "./monitoring/store-view/call-summary.js";
import { redisNodesOf } from "./monitoring/store-view/redis-nodes.js";
import { createStoreView } from "./monitoring/store-view/store-view.js";
import type { StoreView } from "./monitoring/views.js";

export interface WatchersOptions {
  readonly limiter: Limiter;
  readonly store: Store;
  /** As the setting `store` says it. */
  readonly storeUrl: string;
  readonly storeKind: string;
}

export interface Watchers {
  readStore(): Promise<StoreView>;
  close(): Promise<void>;
}

export function startWatchers({ limiter, store, storeUrl, storeKind }: WatchersOptions): Watchers {
  let state: StoreView["state"] = "up";
  limiter.on("degraded", () => {
    state = "degraded";
  });
  limiter.on("recovered", () => {
    state = "up";
  });
  const storeView = createStoreView({
    kind: storeKind,
    nodes: storeUrl === "memory" ? undefined : redisNodesOf(storeUrl),
    keysInMemory: "size" in store ? () => (store as { size: number }).size : undefined,
    rules: () => limiter.rules,
    state: () => state,
    calls: () => callSummary(limiter.storeStats()),
  });
  return {
    readStore: storeView.read,
    close: async () => storeView.close(),
  };
}
