/**
 * The store for a fleet: counters in Redis, each decision one script.
 *
 * The life of a decision: a cached refusal answers at once (`refusal-memory.ts`) -> decide() queues (`decide-queue.ts`) -> at the end of
 * this event-loop turn, or earlier if many are queued, the queued requests share script calls (`choose-script.ts` chooses them, `wire.ts`
 * encodes them) -> each call ends by its deadline (`calls.ts`) -> verdicts. On a cluster, `cluster/` first splits a request by node.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type CostWeights, LEAST_WEIGHT, MOST_WEIGHT } from "../../algorithms/cost-histogram.js";
import type { PoolAsk, PoolAsked, PoolFill, PoolFilled } from "../../algorithms/pool.js";
import type { Check } from "../../check.js";
import { INSTANCES_KEY, LIMITS_KEY, learnedKey, REGIONS_KEY, UTILISATION_KEY } from "../../keys.js";
import { InstanceCount, type OnBeat } from "../instance-count.js";
import type { Amounts, ExtendReply, ReservationState, Reserved, SettleReply } from "../reserved.js";
import type {
  AskedKey,
  AskedPart,
  LeaseRequest,
  MadeAt,
  MaybePromise,
  RefundRequest,
  SharedLimits,
  SharedLimitsRequest,
  SharedReport,
  Store,
  StoreReply,
  StoreRequest,
} from "../store.js";
import type { StoreStats } from "../store-stats.js";
import { RedisCalls } from "./calls.js";
import { ClusterStore } from "./cluster/cluster-store.js";
import { type RedisClient, type RedisConnection, redisConnection } from "./connection.js";
import type { Counters } from "./counters.js";
import { FreedKeys } from "./freed-keys.js";
import { decodePool, encodeFill, poolKeys } from "./pool-wire.js";
import { RefusalMemory } from "./refusal-memory.js";
import { arrayIn, numbersNamed } from "./script-reply.js";
import { readReports, spellWritten } from "./shared-reports.js";
import { SingleNodeStore } from "./single-node-store.js";
import { checkedStoreOptions, type RedisStoreOptions } from "./store-options.js";

const HEARTBEAT_MS = 1_000;
/** After this, the millisecond of a reset is over on every server. */
const RESET_SETTLES_MS = 2;
/** Learned costs expire a week after the last settlement. */
const REMEMBER_COSTS_MS = 604_800_000;

export class RedisStore implements Store {
  readonly #calls: RedisCalls;
  readonly #counters: Counters;
  readonly #refusals: RefusalMemory | undefined;
  readonly #freed: FreedKeys;
  readonly isRemote = true;
  whyNotReady: unknown;

  constructor(connection: RedisConnection, options: RedisStoreOptions = {}) {
    const checked = checkedStoreOptions(options);
    const calls = new RedisCalls(connection, checked);
    const freed = new FreedKeys(calls, (keys) => this.#forget(keys));
    const heardUntil = (nowMonotonicMs: number): number => freed.heardUntilMonotonicMs(nowMonotonicMs);
    const refusals = checked.rememberRefusals ? new RefusalMemory(heardUntil) : undefined;
    // Settlements are not noted: rules with an estimate are asked every second anyway, because each of their requests is settled.
    const onSettled = (keys: readonly string[]): void => this.#forget(keys);
    const onGivenBack = (keys: readonly string[]): void => {
      this.#forget(keys);
      freed.note(keys);
    };
    this.#freed = freed;
    this.#refusals = refusals;
    this.#calls = calls;
    this.#counters = connection.sharded
      ? new ClusterStore(calls, { onGivenBack, onSettled, nodeOf: connection.nodeOf })
      : new SingleNodeStore({ calls, onGivenBack, onSettled, claimsRecords: false });
  }

  decide(request: StoreRequest): MaybePromise<StoreReply> {
    const refusals = this.#refusals;
    if (refusals === undefined) return this.#counters.decide(request);
    const sentMonotonicMs = performance.now();
    const refused = refusals.recall(request, sentMonotonicMs);
    if (refused !== undefined) return refused;
    return this.#counters.decide(request).then((reply) => {
      refusals.remember(request, reply, { sentMonotonicMs, answeredMonotonicMs: performance.now() });
      return reply;
    });
  }

  #forget(keys: readonly string[] | undefined): void {
    const nowMonotonicMs = performance.now();
    this.#refusals?.forget(keys, nowMonotonicMs);
  }

  recall(id: string): Promise<StoreReply | undefined> {
    return this.#counters.recall(id);
  }

  refund(request: RefundRequest, madeAt?: MadeAt): Promise<boolean> {
    return this.#counters.refund(request, madeAt);
  }

  giveBack(checks: readonly Check[], _asked?: readonly AskedPart[], madeAt?: MadeAt): Promise<boolean> {
    return this.#counters.giveBack(checks, madeAt);
  }

  release(lease: LeaseRequest, madeAt?: MadeAt): Promise<boolean> {
    return this.#counters.release(lease, madeAt);
  }

  renew(lease: LeaseRequest, madeAt?: MadeAt): Promise<number> {
    return this.#counters.renew(lease, madeAt);
  }

  settle(reserved: Reserved, amounts: Amounts, name = ""): Promise<SettleReply> {
    return this.#counters.settle(reserved, amounts, name);
  }

  extend(reserved: Reserved, amounts: Amounts): Promise<ExtendReply> {
    return this.#counters.extend(reserved, amounts);
  }

  holdState(reserved: Reserved): Promise<ReservationState> {
    return this.#counters.holdState(reserved);
  }

  async learn(name: string, costs: CostWeights): Promise<CostWeights> {
    const added = [...costs].flat();
    const args = [REMEMBER_COSTS_MS, MOST_WEIGHT, LEAST_WEIGHT, ...added];
    const reply = arrayIn(await this.#calls.run("learn", [learnedKey(name)], args), "an array of buckets and weights");
    const learned = new Map<number, number>();
    for (let i = 0; i < reply.length; i += 2) {
      const [bucket, weight] = numbersNamed(reply.slice(i, i + 2), "bucket", "weight") as [number, number];
      learned.set(bucket, weight);
    }
    return learned;
  }

  block(key: string, lengthMs: number, _asked?: AskedKey, madeAt?: MadeAt): Promise<void> {
    return this.#counters.block(key, lengthMs, madeAt);
  }

  inspect(checks: readonly Check[]): Promise<Record<string, number>[]> {
    return this.#counters.inspect(checks);
  }

  async askForPool(key: string, { name, onlySeq, givesBack, leaseMs }: PoolAsk): Promise<PoolAsked> {
    const args = ["ask", name, onlySeq, givesBack, leaseMs];
    return decodePool(await this.#calls.run("fetch-home", poolKeys(key), args));
  }

  async fillPool(key: string, fill: PoolFill): Promise<PoolFilled> {
    const reply = await this.#calls.run("fetch-home", poolKeys(key), ["fill", ...encodeFill(fill)]);
    const [nowMs, counted] = numbersNamed(reply, "now_ms", "counted") as [number, number];
    // The pool now has units, or knows why not.
    this.#forget([key]);
    return { nowMs, isCounted: counted === 1 };
  }

  async reset(keys: readonly string[], _asked?: AskedKey, madeAt?: MadeAt): Promise<void> {
    this.#forget(keys);
    await this.#counters.reset(keys, madeAt);
    // Counters identify charges by their millisecond: a charge made after the reset, in the same millisecond, would be given back by the
    // refund of a charge made before it.
    await sleep(RESET_SETTLES_MS);
    // A refusal in flight during the reset was cached after the first forgetting.
    this.#forget(keys);
    this.#freed.note(keys);
  }

  countInstances(region?: string, onBeat?: OnBeat): InstanceCount {
    const id = region ?? randomUUID();
    const key = region === undefined ? INSTANCES_KEY : REGIONS_KEY;
    return new InstanceCount(async (step, patienceMs) => {
      const reply = await this.#calls.run("instances", [key], [step, id, patienceMs]);
      return numbersNamed(reply, "now_ms", "instances")[1]!;
    }, onBeat);
  }

  async shareReports(written?: { report: SharedReport; most: number }): Promise<SharedReport[]> {
    const reply = await this.#calls.run("utilisation", [UTILISATION_KEY], written ? spellWritten(written) : []);
    numbersNamed(reply, "now_ms");
    return readReports(reply as unknown[]);
  }

  async shareLimits({ instance, leadsMs, limits }: SharedLimitsRequest): Promise<SharedLimits> {
    const wanted = limits.flatMap(({ rule, limit }) => [rule, limit]);
    const reply = await this.#calls.run("limits", [LIMITS_KEY], [instance, leadsMs, ...wanted]);
    const [, leads] = numbersNamed(reply, "now_ms", "leads");
    return { leads: leads === 1, limits: (reply as unknown[]).slice(2).map(readLimit) };
  }

  async ready(): Promise<boolean> {
    this.whyNotReady = await this.#calls.loadScripts().then(
      () => undefined,
      (error: unknown) => error,
    );
    return this.whyNotReady === undefined;
  }

  stats(): StoreStats {
    return { ...this.#calls.stats(), undos: this.#counters.undos };
  }

  async close(): Promise<void> {
    await this.#counters.close();
    await this.#freed.close();
    await this.#calls.close();
  }
}

/** Anything that is not a limit was not written by us. */
function readLimit(text: unknown): number | undefined {
  const limit = Number(String(text) === "" ? Number.NaN : text);
  return limit > 0 && Number.isFinite(limit) ? limit : undefined;
}

/** A store in Redis: `redisStore("redis://127.0.0.1:6379")`, or with an ioredis or node-redis client, single or cluster. */
export function redisStore(target: string | RedisClient, options: RedisStoreOptions = {}): RedisStore {
  // Validate before opening a connection that nobody would close.
  const { breakerIntervalMs, deadlineMs } = checkedStoreOptions(options);
  // A connection must not be closed while a call on it may still be answered in time.
  const heartbeatMs = Math.max(HEARTBEAT_MS, deadlineMs);
  return new RedisStore(
    redisConnection(target, { tls: options.tls, retryMs: breakerIntervalMs, heartbeatMs }),
    options,
  );
}
