/** Detects that the store does not answer, or runs out of memory. In: the store's view, and the instances' reports. Out: findings. Pure. */
import type { StoreNode, StoreView } from "../views/store.js";
import { type Finding, figure, percent, subjectOf } from "./finding.js";

interface StoreHealth {
  /** This instance has an outage, possibly a partial one. */
  readonly isDegraded: boolean;
  /** Since when the store has failed this instance continuously. */
  readonly failingSinceMs: number | undefined;
  /** The last error of Redis or of the connection. */
  readonly lastError: string | undefined;
  /** Number of other instances for which the store is failing. */
  readonly degradedElsewhere: number;
  /** Requests in the last whole minute, and how many of them a failure policy answered; undefined if unknown. */
  readonly lastMinute: { readonly requests: number; readonly degraded: number } | undefined;
  readonly nowMs: number;
}

/** A single late call is no outage. */
const FAILING_FOR_MS = 3_000;
const DEGRADED_SHARE = 0.01;
const LEAST_DEGRADED = 20;

export function storeDegraded(health: StoreHealth): Finding | undefined {
  const { isDegraded: here, failingSinceMs, lastError, degradedElsewhere, lastMinute, nowMs } = health;
  const share = lastMinute === undefined ? 0 : lastMinute.degraded / Math.max(1, lastMinute.requests);
  const many = lastMinute !== undefined && lastMinute.degraded >= LEAST_DEGRADED && share >= DEGRADED_SHARE;
  const isLasting = failingSinceMs !== undefined && nowMs - failingSinceMs >= FAILING_FOR_MS;
  if (!here && degradedElsewhere === 0 && !many) return undefined;
  const where = degradedElsewhere > 0 ? ` on ${degradedElsewhere + (here ? 1 : 0)} instances` : "";
  const how = many ? `; ${percent(share)} of the last minute's requests were answered by a failure policy` : "";
  return {
    subject: subjectOf("store-degraded"),
    kind: "store-degraded",
    severity: "critical",
    summary: `the store does not answer${where}${how}${lastError === undefined ? "" : `: ${lastError}`}`,
    ...(lastMinute !== undefined && { value: lastMinute.degraded, expected: 0 }),
    level: isLasting || degradedElsewhere > 0 || many ? "fire" : "hold",
  };
}

const NEARLY_FULL = 0.9;
const HOLD_FULL = 0.85;

/** `evictedBefore`: each node's count in the previous round, by address. */
export function storeMemory(
  view: Pick<StoreView, "nodes">,
  input: { evictedBefore: ReadonlyMap<string, number>; oomSeen: boolean },
): Finding[] {
  const leaders = view.nodes.filter((node) => node.role === "leader" && node.state === "up");
  const found = leaders.flatMap((node) => memoryOf(node, input.evictedBefore.get(node.address)) ?? []);
  if (found.length > 0 || !input.oomSeen) return found;
  // Redis reports OOM even if its ACL does not let us read its memory.
  return [
    {
      ...memoryAlert(undefined),
      severity: "critical",
      summary: "Redis refuses writes because its memory is full (OOM): failure policies answer",
      level: "fire",
    },
  ];
}

function memoryOf(node: StoreNode, evictedBefore: number | undefined): Finding | undefined {
  const { address, usedBytes, maxBytes, maxMemoryPolicy = "noeviction", evictedKeys } = node;
  const base = memoryAlert(address);
  const evicted = (evictedKeys ?? 0) - (evictedBefore ?? evictedKeys ?? 0);
  if (evicted > 0) {
    return {
      ...base,
      severity: "critical",
      summary:
        `${address} evicted ${figure(evicted)} keys since the last look (maxmemory-policy ${maxMemoryPolicy}): ` +
        "an evicted counter has forgotten what was used",
      value: evicted,
      expected: 0,
      level: "fire",
    };
  }
  if (usedBytes === undefined || !maxBytes) return undefined;
  const share = usedBytes / maxBytes;
  if (share < HOLD_FULL) return undefined;
  const full = share >= 1 && maxMemoryPolicy === "noeviction";
  const then = full ? "it refuses writes, and failure policies answer" : whatFollows(maxMemoryPolicy);
  return {
    ...base,
    severity: full ? "critical" : "warning",
    summary: `${address} uses ${percent(share)} of its maxmemory (${mib(usedBytes)} of ${mib(maxBytes)}): ${then}`,
    value: usedBytes,
    expected: maxBytes,
    level: share >= NEARLY_FULL ? "fire" : "hold",
  };
}

function memoryAlert(address: string | undefined): Pick<Finding, "subject" | "kind"> {
  return { subject: subjectOf("store-memory", address), kind: "store-memory" };
}

function whatFollows(policy: string): string {
  return policy === "noeviction"
    ? "when it is full it refuses writes, and failure policies answer"
    : `when it is full it evicts keys (${policy}), and evicted counters forget what was used`;
}

function mib(bytes: number): string {
  return `${figure(bytes / 2 ** 20)} MiB`;
}
