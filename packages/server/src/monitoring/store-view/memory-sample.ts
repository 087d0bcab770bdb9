/**
 * How much memory each rule's counters take, from a sample. Keys lie in Redis in the order of a hash, so the first ones of a SCAN
 * are as good as drawn by lot: on every leader up to a thousand are looked at, up to two hundred of them weighed with MEMORY USAGE,
 * and both are extrapolated to DBSIZE. A Redis with fewer keys is looked at whole.
 */
import { ruleOfKey } from "sluice";
import type { RedisNodes } from "./redis-nodes.js";

/** One SCAN blocks Redis for this many keys, some tenths of a millisecond. */
const KEYS_A_SCAN = 250;
const SCANS = 4;
const WEIGHED = 200;

export interface RuleMemory {
  /** Estimated; without a candidate's counters. */
  keys: number;
  /** Absent where MEMORY USAGE is not allowed. */
  bytes: number | undefined;
  /** Mean length of the keys' names. */
  keyLength: number;
}

export interface MemorySample {
  readonly sampledKeys: number;
  readonly ofKeys: number;
  readonly byRule: ReadonlyMap<string, RuleMemory>;
}

interface Weighed {
  readonly rule: string;
  readonly candidate: boolean;
  readonly length: number;
  readonly bytes: number | undefined;
}

export async function sampleMemory(nodes: RedisNodes, leaders: readonly string[]): Promise<MemorySample> {
  const samples = await Promise.all(
    leaders.map((address) =>
      // A leader that is gone, or that allows no SCAN, is left out.
      sampleNode(nodes, address).catch(() => ({ sampledKeys: 0, ofKeys: 0, byRule: new Map<string, RuleMemory>() })),
    ),
  );
  const byRule = new Map<string, RuleMemory>();
  for (const sample of samples) {
    for (const [rule, memory] of sample.byRule) {
      const held = byRule.get(rule);
      byRule.set(rule, held === undefined ? memory : joined(held, memory));
    }
  }
  const sum = (of: (sample: MemorySample) => number): number => samples.reduce((total, each) => total + of(each), 0);
  return { sampledKeys: sum(({ sampledKeys }) => sampledKeys), ofKeys: sum(({ ofKeys }) => ofKeys), byRule };
}

function joined(one: RuleMemory, other: RuleMemory): RuleMemory {
  const keys = one.keys + other.keys;
  return {
    keys,
    bytes: one.bytes === undefined || other.bytes === undefined ? undefined : one.bytes + other.bytes,
    keyLength: keys === 0 ? one.keyLength : (one.keyLength * one.keys + other.keyLength * other.keys) / keys,
  };
}

async function sampleNode(nodes: RedisNodes, address: string): Promise<MemorySample> {
  const { keys, whole } = await scanned(nodes, address);
  const ofKeys = whole ? keys.length : Number(await nodes.ask(address, "DBSIZE"));
  const counters = keys.flatMap((key) => {
    const counted = ruleOfKey(key);
    return counted === undefined ? [] : [{ key, ...counted }];
  });
  const chosen = counters.slice(0, WEIGHED);
  const weights = await Promise.all(
    chosen.map(({ key }) => nodes.ask(address, "MEMORY", "USAGE", key).catch(() => undefined)),
  );
  const weighed = chosen.map(({ rule, candidate, key }, i): Weighed => {
    // Null: it expired meanwhile.
    const bytes = weights[i] === null ? 0 : weights[i];
    return { rule, candidate, length: key.length, bytes: bytes === undefined ? undefined : Number(bytes) };
  });
  const scale = chosen.length === 0 ? 0 : (counters.length / chosen.length) * (ofKeys / Math.max(1, keys.length));
  return { sampledKeys: keys.length, ofKeys, byRule: extrapolated(weighed, scale) };
}

async function scanned(nodes: RedisNodes, address: string): Promise<{ keys: string[]; whole: boolean }> {
  const keys = new Set<string>();
  let cursor = "0";
  for (let i = 0; i < SCANS; i++) {
    const [next, found] = (await nodes.ask(address, "SCAN", cursor, "COUNT", KEYS_A_SCAN)) as [string, string[]];
    for (const key of found) keys.add(key);
    cursor = String(next);
    if (cursor === "0") break;
  }
  return { keys: [...keys], whole: cursor === "0" };
}

function extrapolated(weighed: readonly Weighed[], scale: number): Map<string, RuleMemory> {
  const groups = new Map<string, Weighed[]>();
  for (const each of weighed) {
    const group = groups.get(each.rule);
    if (group === undefined) groups.set(each.rule, [each]);
    else group.push(each);
  }
  return new Map(
    Array.from(groups, ([rule, group]) => {
      const bytes = group.reduce<number | undefined>(
        (sum, each) => (sum === undefined || each.bytes === undefined ? undefined : sum + each.bytes),
        0,
      );
      const memory: RuleMemory = {
        keys: Math.round(group.filter(({ candidate }) => !candidate).length * scale),
        bytes: bytes === undefined ? undefined : Math.round(bytes * scale),
        keyLength: group.reduce((sum, { length }) => sum + length, 0) / group.length,
      };
      return [rule, memory];
    }),
  );
}
