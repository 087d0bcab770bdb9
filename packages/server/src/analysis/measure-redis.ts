/**
 * Measures the cost of rules on a real Redis: bytes and CPU time. Uses counters with its own keys and deletes them afterwards.
 * Bounded: a few thousand keys, a few ten thousand requests.
 */
import { randomBytes } from "node:crypto";
import { type CountingRule, createLimiter, SluiceError } from "sluice";
import { connectRedis, type Redis } from "sluice/internal";
import { parseRedisUrl, redisStore } from "sluice/redis";
import { type Info, parseInfo } from "../monitoring/store-view/node-report.js";

interface MeasureOptions {
  readonly url: string;
  readonly rules: readonly CountingRule[];
  /** Keys per rule. */
  readonly keys: number;
  /** Units charged to each key beforehand. */
  readonly unitsOf: (rule: CountingRule) => number;
  readonly requests: number;
  /** Length of the key attributes' values. */
  readonly valueLength: number;
}

export interface Measured {
  /**
   * Redis's CPU time per request that passes, including network handling. Most refusals never reach Redis: instances have a negative cache,
   * and a refusal charges nothing.
   */
  readonly microseconds: number;
  /** Of the timed requests: 0, unless a rule has separate limits for variants. */
  readonly refused: number;
  /** Within scripts only. */
  readonly scriptMicroseconds: number;
  /** Commands that Redis ran per request, including the script. */
  readonly commands: number;
  readonly bytesPerKey: ReadonlyMap<string, number>;
  readonly keys: number;
  /** The increase of `used_memory`. */
  readonly usedMemory: number;
  readonly redisVersion: string;
}

const IN_FLIGHT = 64;
/** Takes the median of several slices, so that one disturbed by another program, a save or a rehash does not decide. */
const SLICES = 9;
const SCAN_COUNT = 1_000;
const SAMPLES = 50;

export async function measureRules({
  url,
  rules,
  keys,
  unitsOf,
  requests,
  valueLength,
}: MeasureOptions): Promise<Measured> {
  const target = parseRedisUrl(url);
  if (target.kind === "cluster") {
    throw new SluiceError(
      "invalid-setting",
      "store: expected one Redis to measure on, got a cluster; name one of its kind",
    );
  }
  const client = connectRedis(target, { commandTimeoutMs: 5_000, lazy: true }) as Redis;
  // `connect` itself only rejects with "Connection is closed.".
  let lastError: Error | undefined;
  client.on("error", (error) => {
    lastError = error;
  });
  // Part of every counter's key: nothing else is measured or deleted.
  const mark = `m${randomBytes(4).toString("hex")}`;
  const stop = new AbortController();
  const load: Load = {
    url,
    stop: stop.signal,
    rules: rules.map(everywhere),
    keys,
    valueAt: (i) => mark + String(i).padStart(valueLength - mark.length, "0"),
  };
  const pattern = `*=${mark}*`;
  // On Ctrl-C, clean up first: otherwise keys of daily limits would stay for a day. A second signal exits at once.
  let signal: NodeJS.Signals | undefined;
  const onSignal = (received: NodeJS.Signals): void => {
    signal = received;
    stop.abort(new SluiceError("store-unavailable", "store: the measurement was interrupted"));
  };
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  try {
    await client.connect().catch((error: Error) => {
      const why = (lastError ?? error).message;
      throw new SluiceError(
        "store-unavailable",
        `store: could not be reached: ${why}; check its address, and that Redis is up (sluice doctor --store looks closer)`,
      );
    });
    const redisVersion = (await info(client, "server")).get("redis_version") ?? "unknown";
    const memoryBefore = await usedMemory(client);
    await fill(load, unitsOf);
    const usedMemoryBytes = (await usedMemory(client)) - memoryBefore;
    const names = await keysOf(client, pattern);
    const bytesPerKey = await meanBytes(client, names);
    await removeKeys(client, pattern);
    const timed = await timeRequests({ load, unitsOf, requests }, client);
    return { ...timed, bytesPerKey, keys: names.length, usedMemory: usedMemoryBytes, redisVersion };
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new SluiceError("store-unavailable", `store: went away while it was measured: ${why}`);
  } finally {
    await removeKeys(client, pattern).catch(() => {});
    client.disconnect();
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
    if (signal !== undefined) process.kill(process.pid, signal);
  }
}

interface Load {
  readonly url: string;
  readonly stop: AbortSignal;
  readonly rules: readonly CountingRule[];
  readonly keys: number;
  readonly valueAt: (i: number) => string;
}

/** Makes the rule match every request, and gives it a key: without one its counter would be that of the rule in force. */
function everywhere(rule: CountingRule): CountingRule {
  const { match: _, overrides: __, ...rest } = rule;
  return { ...rest, mode: "enforce", key: rule.key.length === 0 ? ["all"] : rule.key } as CountingRule;
}

/** Charges every key of every rule regardless of its limit, so that each holds the requested units. */
async function fill({ url, rules, keys, valueAt, stop }: Load, unitsOf: (rule: CountingRule) => number): Promise<void> {
  for (const rule of rules) {
    const limiter = createLimiter({ store: redisStore(url, { deadlineMs: 10_000 }), rules: [rule] });
    // Concurrency places can only be taken by a check.
    const take = rule.algorithm === "concurrency" ? limiter.check : limiter.charge;
    const cost = unitsOf(rule);
    const ask = (i: number): Promise<unknown> => take.call(limiter, attributesOf([rule], valueAt(i)), { cost });
    // If left open, it would keep reconnecting, and the process would never end.
    await inFlight(keys, ask, stop).finally(() => limiter.close());
  }
}

interface Timing {
  readonly load: Load;
  readonly unitsOf: (rule: CountingRule) => number;
  readonly requests: number;
}

async function timeRequests(
  { load, unitsOf, requests }: Timing,
  client: Redis,
): Promise<Pick<Measured, "microseconds" | "refused" | "scriptMicroseconds" | "commands">> {
  const { url, keys, valueAt, stop } = load;
  const warmUp = Math.min(1_000, requests);
  const perKey = Math.ceil((warmUp + requests) / keys);
  // The keys end up with the requested units, or with more if the timed requests exceed them.
  const before = new Map(load.rules.map((rule) => [rule.id, Math.max(1, unitsOf(rule) - perKey * costOf(rule))]));
  const rules = load.rules.map((rule) => withRoom(rule, before.get(rule.id)! + perKey * costOf(rule)));
  await fill({ ...load, rules }, ({ id }) => before.get(id)!);
  const store = redisStore(url, { deadlineMs: 10_000, rememberRefusals: false });
  const limiter = createLimiter({ store, rules });
  let refused = 0;
  const ask = async (i: number): Promise<void> => {
    const { allowed, degraded } = await limiter.check(attributesOf(rules, valueAt(i % keys)));
    if (degraded !== undefined) throw new Error("a check was answered without it");
    if (!allowed) refused++;
  };
  const slices: { cpuUs: number; scriptUs: number; commands: number }[] = [];
  const each = Math.ceil(requests / SLICES);
  try {
    // Warm up first: scripts are loaded, code is compiled.
    await inFlight(warmUp, ask, stop);
    refused = 0;
    for (let done = 0; done < requests; done += each) {
      const count = Math.min(each, requests - done);
      const from = await counters(client);
      await inFlight(count, (i) => ask(done + i), stop);
      const to = await counters(client);
      slices.push({
        cpuUs: ((to.cpuSeconds - from.cpuSeconds) * 1e6) / count,
        scriptUs: (to.scriptUs - from.scriptUs) / count,
        commands: (to.commands - from.commands) / count,
      });
    }
  } finally {
    await limiter.close();
  }
  return {
    microseconds: median(slices.map(({ cpuUs }) => cpuUs)),
    refused,
    scriptMicroseconds: median(slices.map(({ scriptUs }) => scriptUs)),
    commands: median(slices.map(({ commands }) => commands)),
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}

function costOf({ cost }: CountingRule): number {
  return typeof cost === "number" ? cost : 1;
}

/** The rule with room for this many units in total, and without anything else that could refuse. */
function withRoom(rule: CountingRule, units: number): CountingRule {
  const { minInterval: _, adapt: __, ...rest } = rule as CountingRule & { minInterval?: unknown; adapt?: unknown };
  return {
    ...rest,
    limit: Math.max(rule.limit, units),
    ...("burst" in rule && rule.burst !== undefined && { burst: Math.max(rule.burst, units) }),
  } as CountingRule;
}

/** The same value for every key attribute of any rule. */
function attributesOf(rules: readonly CountingRule[], value: string): Record<string, string> {
  return Object.fromEntries(rules.flatMap(({ key }) => key.map((name) => [name, value])));
}

/** Settles only when all requests have been answered, even if one failed: none may reach a Redis that was cleaned up. */
async function inFlight(count: number, ask: (i: number) => Promise<unknown>, stop: AbortSignal): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    try {
      for (stop.throwIfAborted(); next < count; stop.throwIfAborted()) await ask(next++);
    } catch (error) {
      next = count;
      throw error;
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: Math.min(IN_FLIGHT, count) }, worker));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function info(client: Redis, section: string): Promise<Info> {
  return parseInfo(await client.info(section));
}

async function usedMemory(client: Redis): Promise<number> {
  return Number((await info(client, "memory")).get("used_memory"));
}

async function counters(client: Redis): Promise<{ cpuSeconds: number; scriptUs: number; commands: number }> {
  const cpu = await info(client, "cpu");
  const stats = await info(client, "commandstats");
  let scriptUs = 0;
  let commands = 0;
  for (const [name, text] of stats) {
    const calls = Number(/calls=(\d+)/.exec(text)?.[1] ?? 0);
    if (/^cmdstat_(info|ping|client.*|hello)$/.test(name)) continue;
    commands += calls;
    if (/^cmdstat_eval(sha)?$/.test(name)) scriptUs += Number(/usec=(\d+)/.exec(text)?.[1] ?? 0);
  }
  return {
    cpuSeconds: Number(cpu.get("used_cpu_user")) + Number(cpu.get("used_cpu_sys")),
    scriptUs,
    commands,
  };
}

async function keysOf(client: Redis, pattern: string): Promise<string[]> {
  const found: string[] = [];
  let cursor = "0";
  do {
    const [next, keys] = await client.scan(cursor, "MATCH", pattern, "COUNT", SCAN_COUNT);
    found.push(...keys);
    cursor = next;
  } while (cursor !== "0");
  return found;
}

/** Grouped by rule: the id comes after the braces. */
async function meanBytes(client: Redis, names: readonly string[]): Promise<Map<string, number>> {
  const byRule = new Map<string, string[]>();
  for (const name of names) {
    const rule = /\}:([a-z0-9._-]+):/.exec(name)?.[1];
    if (rule !== undefined) byRule.set(rule, [...(byRule.get(rule) ?? []), name].slice(0, SAMPLES));
  }
  const means = new Map<string, number>();
  for (const [rule, sample] of byRule) {
    const sizes = await Promise.all(sample.map((name) => client.memory("USAGE", name, "SAMPLES", 0)));
    means.set(rule, sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0) / sample.length);
  }
  return means;
}

async function removeKeys(client: Redis, pattern: string): Promise<void> {
  const names = await keysOf(client, pattern);
  for (let i = 0; i < names.length; i += SCAN_COUNT) await client.unlink(...names.slice(i, i + SCAN_COUNT));
}
