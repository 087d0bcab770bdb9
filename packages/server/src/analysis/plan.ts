/**
 * Capacity planning: the memory, CPU time, connections and nodes that a set of rules needs of Redis. Every figure comes with its formula.
 * Pure.
 */
import { type CountingRule, fullRuleKeyBytes, type Rule } from "sluice";
import { isCounting, parseDuration } from "sluice/internal";

export interface PlanInput {
  readonly rules: readonly Rule[];
  /** Live counters per rule. */
  readonly keys: number;
  /** Requests per second over all instances. */
  readonly rate: number;
  /** Length of key attribute values, in characters. */
  readonly valueLength: number;
  readonly instances: number;
  /** Memory of one node. */
  readonly nodeBytes: number;
  /** Redis's CPU time for a request that matches all rules; measured, or assumed. */
  readonly microseconds: number;
  readonly isMeasured: boolean;
}

interface RulePlan {
  readonly rule: string;
  readonly keys: number;
  /** Average units per key at this rate, at most its limit. */
  readonly unitsPerKey: number;
  readonly bytesPerKey: number;
  readonly bytesPerFullKey: number;
  readonly bytes: number;
  readonly fullBytes: number;
}

export interface Plan {
  readonly rules: readonly RulePlan[];
  readonly memory: { readonly bytes: number; readonly fullBytes: number; readonly formula: string };
  readonly cpu: { readonly cores: number; readonly microseconds: number; readonly formula: string };
  readonly connections: { readonly count: number; readonly formula: string };
  readonly nodes: { readonly count: number; readonly formula: string };
  readonly warnings: readonly string[];
}

/**
 * A hash table entry is 24 bytes, which size-class allocators round up to 32; `MEMORY USAGE` counts 24. Each key has one in the key table
 * and one in the expiry table, each member of a large sorted set one in the set's own.
 */
const TABLE_ENTRY = 32;
const TOLD_ENTRY = 24;
/** A larger sorted set has a hash table of its members. */
const LONGEST_LISTPACK = 128;
/** Both tables have a pointer per slot, and the next power of two of slots. */
const POINTER = 8;
/** The memory of an empty Redis. */
const EMPTY_REDIS = 2 ** 20;
/** Share of a node's memory: the rest is for replication, fragmentation and copy-on-write of a fork. */
const USABLE_MEMORY = 0.6;
/** Share of a core: Redis runs commands on one, and queueing delay grows without bound near 1. */
const USABLE_CPU = 0.5;
/** One each for counters, rules, announcements and monitoring. */
const CONNECTIONS_PER_INSTANCE = 4;
/** Characters around the key attributes and the rule's id: the prefix, two braces, two colons and the algorithm's letter. */
const KEY_FRAME = 14;

export function planFor(input: PlanInput): Plan {
  const rules = input.rules
    .filter(isCounting)
    .filter(({ mode }) => mode !== "off")
    .map((rule) => planRule(rule, input));
  const allKeys = rules.reduce((sum, { keys }) => sum + keys, 0);
  const tables = tableBytes(allKeys);
  const sum = (read: (rule: RulePlan) => number): number =>
    EMPTY_REDIS + tables + rules.reduce((total, rule) => total + read(rule), 0);
  const bytes = Math.round(sum(({ bytes: own }) => own));
  const fullBytes = Math.round(sum(({ fullBytes: own }) => own));
  const cores = (input.rate * input.microseconds) / 1e6;
  const byMemory = Math.ceil(fullBytes / (input.nodeBytes * USABLE_MEMORY));
  const byCpu = Math.ceil(cores / USABLE_CPU);
  const count = Math.max(1, byMemory, byCpu);
  // A cluster has at least three leaders.
  const nodes = count === 1 ? 1 : Math.max(3, count);
  const connections = input.instances * CONNECTIONS_PER_INSTANCE * nodes;
  const how = input.isMeasured ? "measured" : "assumed; --measure asks your Redis";
  return {
    rules,
    memory: {
      bytes,
      fullBytes,
      formula: `1 MiB + sum over rules of keys x bytes a key + tables of ${allKeys} keys and expiries`,
    },
    cpu: {
      cores: Number(cores.toPrecision(3)),
      microseconds: Number(input.microseconds.toPrecision(3)),
      formula: `${input.rate} requests a second x ${Number(input.microseconds.toPrecision(3))} us (${how})`,
    },
    connections: {
      count: connections,
      formula: `${input.instances} instances x ${CONNECTIONS_PER_INSTANCE} x ${nodes} nodes`,
    },
    nodes: {
      count: nodes,
      formula: `the larger of memory / (${USABLE_MEMORY} x ${mib(input.nodeBytes)} MiB) = ${byMemory} and cores / ${USABLE_CPU} = ${byCpu}; a cluster has at least three leaders`,
    },
    warnings: warningsOf(input, { byMemory, byCpu, rules }),
  };
}

function planRule(rule: CountingRule, { keys, rate, valueLength }: PlanInput): RulePlan {
  // A rule without a key has a single counter.
  const own = rule.key.length === 0 ? 1 : keys;
  const keyLength = keyLengthOf(rule, valueLength);
  const unitsPerKey = Math.max(1, Math.min(rule.limit, Math.round((rate / own) * secondsOf(rule))));
  const bytesPerFullKey = fullRuleKeyBytes(rule, keyLength);
  const bytesPerKey = fullRuleKeyBytes({ ...rule, limit: unitsPerKey }, keyLength);
  return {
    rule: rule.id,
    keys: own,
    unitsPerKey,
    bytesPerKey,
    bytesPerFullKey,
    bytes: own * (bytesPerKey + untold(rule, unitsPerKey)),
    fullBytes: own * (bytesPerFullKey + untold(rule, rule.limit)),
  };
}

/** Bytes of a sorted set that `MEMORY USAGE` does not count. */
function untold(rule: Rule, units: number): number {
  const isSet =
    rule.algorithm === "concurrency" || (rule.algorithm === "rolling-window" && rule.storage === "sorted-set");
  return isSet && units > LONGEST_LISTPACK ? units * (TABLE_ENTRY - TOLD_ENTRY) : 0;
}

export function keyLengthOf({ id, key }: Rule, valueLength: number): number {
  const spelled = key.reduce((sum, name) => sum + name.length + 1 + valueLength, Math.max(0, key.length - 1));
  return KEY_FRAME + (key.length === 0 ? 1 : spelled) + id.length;
}

/** How long a unit stays in the counter. */
function secondsOf(rule: Rule): number {
  if ("window" in rule && rule.window !== undefined) return (parseDuration(rule.window) ?? 86_400_000) / 1_000;
  return "ttl" in rule && rule.ttl !== undefined ? parseDuration(rule.ttl)! / 1_000 : 30;
}

export function tableBytes(keys: number): number {
  if (keys === 0) return 0;
  const places = 2 ** Math.ceil(Math.log2(keys));
  return keys * (2 * TABLE_ENTRY - TOLD_ENTRY) + 2 * POINTER * places;
}

function warningsOf(
  { rules, nodeBytes, rate }: PlanInput,
  found: { byMemory: number; byCpu: number; rules: readonly RulePlan[] },
): string[] {
  const warnings: string[] = [];
  if (found.byMemory > 1)
    warnings.push(`full keys do not fit into one node of ${mib(nodeBytes)} MiB: use a cluster, or a smaller algorithm`);
  if (found.byCpu > 1) warnings.push("one Redis cannot run this many scripts a second: use a cluster");
  for (const rule of rules) {
    if (rule.key.length === 0 && found.byCpu > 1) {
      warnings.push(
        `${rule.id} has one counter: a cluster does not spread it; ${rate} requests a second all meet one node`,
      );
    }
  }
  if (found.byMemory <= 1) return warnings;
  const largest = found.rules.reduce<RulePlan | undefined>(
    (most, rule) => (most === undefined || rule.fullBytes > most.fullBytes ? rule : most),
    undefined,
  );
  const total = found.rules.reduce((sum, { fullBytes }) => sum + fullBytes, 0);
  const source = rules.find(({ id }) => id === largest?.rule);
  if (
    largest !== undefined &&
    largest.fullBytes > total / 2 &&
    source?.algorithm === "rolling-window" &&
    source.limit >= 1_000
  ) {
    const share = Math.round((100 * largest.fullBytes) / total);
    warnings.push(
      `${largest.rule} takes ${share} % of the memory at full keys: a sliding counter would take about 150 bytes a key, and be approximate`,
    );
  }
  return warnings;
}

function mib(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}
