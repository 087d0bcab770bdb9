/**
 * Finds the keys that are blocked now, of one rule or of all, by SCAN on every leader: bounded in keys scanned and in blocks returned.
 * Reports whether the list is complete.
 */
import { readCounterKey } from "sluice";
import { blockKeysPattern, KEY_PREFIX } from "sluice/internal";
import type { BlockedKeysView, BlockedKeyView } from "../views/keys.js";
import type { RedisNodes } from "./redis-nodes.js";

/** Keys per SCAN: blocks Redis for some tenths of a millisecond. */
const KEYS_A_SCAN = 500;
/** Per leader: a hundred thousand keys. */
const SCANS = 200;
export const MOST_TOLD = 1_000;

type Found = Pick<BlockedKeysView, "keys" | "complete">;

interface Wanted {
  /** The store's own. */
  readonly prefix: string;
  readonly rule: string | undefined;
}

export async function scanBlockedKeys(nodes: RedisNodes, leaders: readonly string[], wanted: Wanted): Promise<Found> {
  const found = await Promise.all(leaders.map((address) => scanNode(nodes, address, wanted)));
  const keys = found.flatMap((each) => each.keys);
  return {
    keys: keys.slice(0, MOST_TOLD),
    complete: keys.length <= MOST_TOLD && found.every(({ complete }) => complete),
  };
}

async function scanNode(nodes: RedisNodes, address: string, { prefix, rule }: Wanted): Promise<Found> {
  const nameOf = (key: string): string => key.slice(prefix.length + KEY_PREFIX.length);
  const pattern = blockKeysPattern(prefix);
  const found = new Set<string>();
  let cursor = "0";
  for (let i = 0; i < SCANS && found.size <= MOST_TOLD; i++) {
    const asked = ["SCAN", cursor, "MATCH", pattern, "COUNT", KEYS_A_SCAN] as const;
    const [next, keys] = (await nodes.ask(address, ...asked)) as [string, string[]];
    // Filter before truncating: a rule with many blocks must not hide one with few.
    for (const key of keys) if (rule === undefined || readCounterKey(nameOf(key)).rule === rule) found.add(key);
    cursor = String(next);
    if (cursor === "0") break;
  }
  const [seconds, micros] = (await nodes.ask(address, "TIME")) as [string, string];
  const nowMs = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  const keys = await Promise.all(
    [...found].slice(0, MOST_TOLD).map(async (key) => {
      const leftMs = leftOf(await nodes.ask(address, "GET", key), nowMs);
      return leftMs > 0 ? [blockedKey(nameOf(key), leftMs)] : [];
    }),
  );
  return { keys: keys.flat(), complete: cursor === "0" && found.size <= MOST_TOLD };
}

/** Parses the format of block-state.lua. */
function leftOf(stored: unknown, nowMs: number): number {
  const [untilMs, lengthMs] = String(stored ?? "0 0")
    .split(" ")
    .map(Number) as [number, number];
  return Math.max(0, Math.min(untilMs - nowMs, lengthMs));
}

export function blockedKey(key: string, leftMs: number): BlockedKeyView {
  const { rule, attributes } = readCounterKey(key);
  return { rule, ...(attributes !== undefined && { attributes }), leftMs };
}
