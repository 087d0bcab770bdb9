/**
 * Estimates the memory of each rule's counters from a sample. Redis stores keys in hash order, so the first ones of a SCAN are a random
 * sample: on every leader up to a thousand keys are scanned, up to two hundred of them measured with MEMORY USAGE, and both extrapolated to
 * DBSIZE. A Redis with fewer keys is scanned completely.
 */
import { ruleOfKey } from "sluice";
import type { RedisNodes } from "./redis-nodes.js";

/** Keys per SCAN: blocks Redis for some tenths of a millisecond. */
const KEYS_A_SCAN = 250;
const SCANS = 4;
const WEIGHED = 200;

interface RuleMemory {
  /** Estimated; without candidates' counters. */
  keys: number;
  /** Absent if MEMORY USAGE is not allowed. */
  bytes: number | undefined;
  /** Mean length of the key names. */
  keyLength: number;
}

export interface MemorySample {
  readonly sampledKeys: number;
  readonly ofKeys: number;
  readonly byRule: ReadonlyMap<string, RuleMemory>;
}

interface Counter {
  readonly key: string;
  readonly rule: string;
  readonly candidate: boolean;
}

export async function sampleMemory(
  nodes: RedisNodes,
  leaders: readonly string[],
  prefix: string,
): Promise<MemorySample> {
  const samples = await Promise.all(
    leaders.map((address) =>
      // Skip a leader that is down, or does not allow SCAN.
      sampleNode(nodes, address, prefix).catch(() => ({
        sampledKeys: 0,
        ofKeys: 0,
        byRule: new Map<string, RuleMemory>(),
      })),
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

async function sampleNode(nodes: RedisNodes, address: string, prefix: string): Promise<MemorySample> {
  const { keys, whole } = await scanned(nodes, address);
  const ofKeys = whole ? keys.length : Number(await nodes.ask(address, "DBSIZE"));
  const counters = keys.flatMap((key) => {
    const counted = ruleOfKey(key, prefix);
    return counted === undefined ? [] : [{ key, ...counted }];
  });
  const chosen = chooseToWeigh(counters);
  const weights = await Promise.all(
    chosen.map(({ key }) => nodes.ask(address, "MEMORY", "USAGE", key).catch(() => undefined)),
  );
  // Null: it has expired in the meantime.
  const weighed = chosen.flatMap(({ rule }, i) => (weights[i] == null ? [] : [{ rule, bytes: Number(weights[i]) }]));
  return {
    sampledKeys: keys.length,
    ofKeys,
    byRule: extrapolated(counters, weighed, ofKeys / Math.max(1, keys.length)),
  };
}

/** One key of each rule first, so that rules with few keys are measured too. */
function chooseToWeigh(counters: readonly Counter[]): readonly Counter[] {
  const seen = new Set<string>();
  const first: Counter[] = [];
  const others: Counter[] = [];
  for (const counter of counters) {
    (seen.has(counter.rule) ? others : first).push(counter);
    seen.add(counter.rule);
  }
  return [...first, ...others].slice(0, WEIGHED);
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

function extrapolated(
  counters: readonly Counter[],
  weighed: readonly { rule: string; bytes: number }[],
  scale: number,
): Map<string, RuleMemory> {
  const meanOf = (some: readonly { bytes: number }[]): number | undefined =>
    some.length === 0 ? undefined : some.reduce((sum, { bytes }) => sum + bytes, 0) / some.length;
  const weights = groupByRule(weighed);
  const anyMean = meanOf(weighed);
  return new Map(
    Array.from(groupByRule(counters), ([rule, own]) => {
      // A rule without measured keys is assumed to be average.
      const mean = meanOf(weights.get(rule) ?? []) ?? anyMean;
      const memory: RuleMemory = {
        keys: Math.round(own.filter(({ candidate }) => !candidate).length * scale),
        bytes: mean === undefined ? undefined : Math.round(mean * own.length * scale),
        keyLength: own.reduce((sum, { key }) => sum + key.length, 0) / own.length,
      };
      return [rule, memory];
    }),
  );
}

function groupByRule<T extends { readonly rule: string }>(all: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const each of all) {
    const group = groups.get(each.rule);
    if (group === undefined) groups.set(each.rule, [each]);
    else group.push(each);
  }
  return groups;
}
