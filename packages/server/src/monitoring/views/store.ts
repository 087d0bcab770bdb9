/** The store: its nodes, its memory, and how it answers. */
import type { Latency, OutageView } from "./stats.js";

/** `GET /admin/v1/store` */
export interface StoreView {
  readonly atMs: number;
  readonly kind: string;
  readonly state: "up" | "degraded";
  /** Present while it is degraded. */
  readonly outage?: OutageView;
  /** Breaker, calls, errors and latency as this instance sees them. */
  readonly calls: {
    readonly total: number;
    readonly errors: number;
    readonly latency: Latency;
    readonly breaker: "closed" | "open" | "half-open";
  };
  /** Counters in this process; the memory store only. */
  readonly keysInMemory?: number;
  /** One for each Redis node; none with the memory store. */
  readonly nodes: readonly StoreNode[];
  readonly memory: {
    /** Bytes that the counters use, sampled; absent where it cannot be known. */
    readonly measuredBytes?: number;
    /** If every key that is there were at its limit, from the memory model; absent where the keys cannot be known. */
    readonly predictedFullBytes?: number;
    /** Keys that were looked at, and keys there are: equal if all were looked at. */
    readonly sample?: { readonly keys: number; readonly ofKeys: number };
    readonly byRule: readonly {
      readonly rule: string;
      readonly keys: number;
      readonly measuredBytes?: number;
      readonly predictedFullBytes: number;
    }[];
  };
}

export interface StoreNode {
  readonly address: string;
  readonly role: "leader" | "replica";
  readonly state: "up" | "down";
  readonly version?: string;
  readonly leaderAddress?: string;
  /** Spelled ranges, "0-5460"; a cluster's leaders only. */
  readonly slots?: readonly string[];
  readonly usedBytes?: number;
  readonly maxBytes?: number;
  readonly maxMemoryPolicy?: string;
  readonly opsPerSecond?: number;
  readonly keys?: number;
  readonly evictedKeys?: number;
  readonly connectedClients?: number;
  readonly replicationLagBytes?: number;
  readonly pingMs?: number;
  /** Newest first, at most ten. */
  readonly slow?: readonly { readonly atMs: number; readonly tookMs: number; readonly command: string }[];
  /** The reply of `LATENCY LATEST`; empty unless the server watches latencies (`latency-monitor-threshold`). */
  readonly latencyEvents?: readonly {
    readonly event: string;
    readonly atMs: number;
    readonly lastMs: number;
    readonly worstMs: number;
  }[];
}
