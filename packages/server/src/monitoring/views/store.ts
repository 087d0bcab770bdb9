/** The store: its nodes, its memory, and its calls. */
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
  /** One per Redis node; empty with the memory store. */
  readonly nodes: readonly StoreNode[];
  readonly memory: {
    /** Bytes used by the counters, sampled; absent if unknown. */
    readonly measuredBytes?: number;
    /** The memory model's prediction if every existing key were at its limit; absent if the keys are unknown. */
    readonly predictedFullBytes?: number;
    /** Keys sampled, and total keys: equal if all were sampled. */
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
  /** As ranges, "0-5460"; only for a cluster's leaders. */
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
  /** The reply of `LATENCY LATEST`; empty unless the server monitors latencies (`latency-monitor-threshold`). */
  readonly latencyEvents?: readonly {
    readonly event: string;
    readonly atMs: number;
    readonly lastMs: number;
    readonly worstMs: number;
  }[];
}
