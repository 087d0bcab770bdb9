/**
 * `GET /admin/v1/store`: the store as this instance sees it, each Redis node, and memory by rule compared with the prediction for all keys
 * at their limit. Cached briefly, so that many viewers cost one query; a failed part is omitted, never waited for.
 */
import { type BlockedKey, fullRuleKeyBytes, type Rule, SluiceError } from "sluice";
import { isCounting } from "sluice/internal";
import { singleFlight, singleFlightBy } from "../single-flight.js";
import type { BlockedKeysView } from "../views/keys.js";
import type { StoreView } from "../views/store.js";
import { blockedKey, MOST_TOLD, scanBlockedKeys } from "./blocked-keys.js";
import { type MemorySample, sampleMemory } from "./memory-sample.js";
import type { RedisNodes } from "./redis-nodes.js";

interface StoreViewOptions {
  readonly kind: string;
  /** Absent with the memory store. */
  readonly nodes?: RedisNodes | undefined;
  /** `--store-prefix`: other keys do not belong to this fleet. */
  readonly prefix?: string | undefined;
  /** Number of counters in the memory store. */
  readonly keysInMemory?: (() => number) | undefined;
  /** Blocked keys in the memory store. */
  readonly blocksInMemory?: ((rule?: string) => readonly BlockedKey[]) | undefined;
  readonly findRule: (id: string) => Rule | undefined;
  readonly outage: () => StoreView["outage"];
  readonly calls: () => StoreView["calls"];
}

export interface StoreWatch {
  read(): Promise<StoreView>;
  nodes(): Promise<StoreView["nodes"]>;
  blockedKeys(rule?: string): Promise<BlockedKeysView>;
  close(): void;
}

const NODES_FOR_MS = 1_500;
const SAMPLE_FOR_MS = 30_000;
const BLOCKED_FOR_MS = 1_000;
const MOST_RULES = 1_000;

export function createStoreView(options: StoreViewOptions): StoreWatch {
  const { kind, nodes, prefix = "", findRule, outage, calls, keysInMemory } = options;
  const readNodes = singleFlight(NODES_FOR_MS, async () => (nodes === undefined ? [] : await nodes.read()));
  const leaders = async (): Promise<string[]> => {
    const up = (await readNodes()).filter((node) => node.role === "leader" && node.state === "up");
    if (up.length === 0) throw new SluiceError("store-unavailable", "no node of the store answers");
    return up.map(({ address }) => address);
  };
  const readSample = singleFlight(SAMPLE_FOR_MS, async () => {
    return nodes === undefined ? undefined : await sampleMemory(nodes, await leaders(), prefix);
  });
  const readBlocked = singleFlightBy(BLOCKED_FOR_MS, async (rule: string | undefined): Promise<BlockedKeysView> => {
    const { keys, complete } =
      nodes === undefined
        ? inMemory(options.blocksInMemory?.(rule) ?? [])
        : await scanBlockedKeys(nodes, await leaders(), { prefix, rule });
    return { atMs: Date.now(), keys: [...keys].sort((a, b) => b.leftMs - a.leftMs), complete };
  });
  return {
    nodes: readNodes,
    blockedKeys: (rule) => readBlocked(rule ?? "", rule),
    async read() {
      const [all, sample] = await Promise.all([readNodes(), readSample().catch(() => undefined)]);
      const held = keysInMemory?.();
      const away = outage();
      return {
        atMs: Date.now(),
        kind,
        state: away === undefined ? "up" : "degraded",
        ...(away !== undefined && { outage: away }),
        calls: calls(),
        nodes: all,
        memory: memoryOf(sample, findRule),
        ...(held !== undefined && { keysInMemory: held }),
      };
    },
    close: () => nodes?.close(),
  };
}

function inMemory(blocks: readonly BlockedKey[]): Pick<BlockedKeysView, "keys" | "complete"> {
  return { keys: blocks.map(({ key, leftMs }) => blockedKey(key, leftMs)), complete: blocks.length < MOST_TOLD };
}

function memoryOf(sample: MemorySample | undefined, findRule: (id: string) => Rule | undefined): StoreView["memory"] {
  if (sample === undefined) return { byRule: [] };
  const byRule = Array.from(sample.byRule, ([id, { keys, bytes, keyLength }]) => {
    const rule = findRule(id);
    // A deleted rule's counters remain until they expire, and grow no more.
    const predictedFullBytes =
      rule !== undefined && isCounting(rule) ? Math.round(keys * fullRuleKeyBytes(rule, keyLength)) : (bytes ?? 0);
    return { rule: id, keys, ...(bytes !== undefined && { measuredBytes: bytes }), predictedFullBytes };
  });
  byRule.sort((a, b) => b.predictedFullBytes - a.predictedFullBytes);
  const measured = byRule.map(({ measuredBytes }) => measuredBytes);
  const known = measured.every((bytes) => bytes !== undefined);
  return {
    ...(known && { measuredBytes: measured.reduce<number>((sum, bytes) => sum + bytes!, 0) }),
    predictedFullBytes: byRule.reduce((sum, { predictedFullBytes }) => sum + predictedFullBytes, 0),
    sample: { keys: sample.sampledKeys, ofKeys: sample.ofKeys },
    byRule: byRule.slice(0, MOST_RULES),
  };
}
