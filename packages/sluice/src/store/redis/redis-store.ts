/**
 * The store for a fleet: counters in Redis, each decision one script.
 *
 * The life of a decision: decide() queues (`decide-queue.ts`) -> at the end of this turn of the event loop all that came share
 * script calls (`wire.ts` spells them) -> each call ends in time (`calls.ts`) -> verdicts.
 */
import { randomUUID } from "node:crypto";
import type { Check } from "../../check.js";
import { hashTag, INSTANCES_KEY, KEY_PREFIX, requestIdKey, storedAs } from "../../keys.js";
import { InstanceCount } from "../instance-count.js";
import type { LeaseRequest, MaybePromise, RefundRequest, Store, StoreReply, StoreRequest } from "../store.js";
import type { StoreStats } from "../store-stats.js";
import { RedisCalls } from "./calls.js";
import { Repayments } from "./cluster/compensation.js";
import { SlotDecider } from "./cluster/decide-in-parts.js";
import { MovingTags } from "./cluster/moving-slots.js";
import { RequestPlaces } from "./cluster/request-places.js";
import { groupByTag } from "./cluster/split-by-tag.js";
import { type RedisClient, type RedisConnection, redisConnection } from "./connection.js";
import { DecideQueue } from "./decide-queue.js";
import { RefusalMemory } from "./refusal-memory.js";
import { checkedStoreOptions, type RedisStoreOptions } from "./store-options.js";
import { decodeRecord, policyArguments, recordText } from "./wire.js";

/** On a single Redis all keys are within one script's reach, whatever their tags. */
const SHARED_TAG = "*";
const HEARTBEAT_MS = 1_000;

export class RedisStore implements Store {
  readonly #calls: RedisCalls;
  readonly #queue: DecideQueue;
  readonly #places: RequestPlaces;
  readonly #repayments: Repayments;
  readonly #slots: SlotDecider;
  readonly #refusals: RefusalMemory | undefined;
  whyNotReady: unknown;
  readonly #sharded: boolean;

  constructor(connection: RedisConnection, options: RedisStoreOptions = {}) {
    const checked = checkedStoreOptions(options);
    this.#refusals = checked.rememberRefusals ? new RefusalMemory() : undefined;
    this.#sharded = connection.sharded;
    this.#calls = new RedisCalls(connection, checked);
    this.#queue = new DecideQueue(this.#calls, connection.sharded);
    const calls = this.#calls;
    const queue = this.#queue;
    const places = new RequestPlaces(calls);
    const moving = new MovingTags();
    const repayments = new Repayments({
      calls,
      moving,
      tagOf: connection.sharded ? hashTag : () => SHARED_TAG,
      serverNowMs: () => queue.serverNowMs,
      onGivenBack: (keys) => this.#refusals?.forget(keys),
    });
    this.#places = places;
    this.#repayments = repayments;
    this.#slots = new SlotDecider({ calls, queue, places, repayments, moving });
  }

  decide(request: StoreRequest): MaybePromise<StoreReply> {
    const refusals = this.#refusals;
    if (refusals === undefined) return this.#decide(request);
    const sinceMs = performance.now();
    const refused = refusals.recall(request, sinceMs);
    if (refused !== undefined) return refused;
    return this.#decide(request).then((reply) => {
      refusals.remember(request, reply, sinceMs);
      return reply;
    });
  }

  #decide(request: StoreRequest): Promise<StoreReply> {
    if (this.#sharded) return this.#slots.decide(request);
    const { id } = request;
    return this.#queue.add(request, id === undefined ? undefined : requestIdKey(id, SHARED_TAG));
  }

  async recall(id: string): Promise<StoreReply | undefined> {
    const tags = this.#sharded ? await this.#places.tagsOf(id) : [SHARED_TAG];
    const records = await Promise.all(tags.map((tag) => this.#calls.call("GET", [KEY_PREFIX + requestIdKey(id, tag)])));
    const replies = records.flatMap((record) => {
      const text = recordText(record);
      const reply = text === undefined ? undefined : decodeRecord(text, this.#queue.serverNowMs);
      return reply?.repeated === undefined ? [] : [{ ...reply, repeated: reply.repeated }];
    });
    const [first] = replies;
    if (first === undefined) return undefined;
    return {
      ...first,
      verdicts: replies.flatMap(({ verdicts }) => verdicts),
      timesMs: replies.flatMap(({ verdicts, nowMs, timesMs }) => timesMs ?? verdicts.map(() => nowMs)),
      entryIds: replies.flatMap(({ verdicts, repeated }) => verdicts.map(() => repeated.entryId)),
      repeated: { ...first.repeated, checks: replies.flatMap(({ repeated }) => repeated.checks) },
    };
  }

  async refund({ charges, id }: RefundRequest): Promise<boolean> {
    const groups = this.#sharded ? groupByTag(charges, ({ check }) => check.key) : [charges];
    const settled = await Promise.allSettled(groups.map((group) => this.#repayments.refund({ charges: group, id })));
    const failed = settled.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const given = settled.some((outcome) => outcome.status === "fulfilled" && outcome.value);
    if (given && this.#sharded && id !== undefined) {
      await this.#places.forget(
        id,
        charges.map(({ check }) => hashTag(check.key)),
      );
    }
    return given;
  }

  async giveBack(checks: readonly Check[]): Promise<boolean> {
    const costly = checks.filter(({ cost }) => cost > 0);
    const groups = this.#sharded ? groupByTag(costly, ({ key }) => key) : costly.length === 0 ? [] : [costly];
    const given = await Promise.all(groups.map((group) => this.#giveBackPart(group)));
    return given.includes(true);
  }

  async #giveBackPart(checks: readonly Check[]): Promise<boolean> {
    const keys = checks.map(({ key }) => key);
    const args = checks.flatMap(({ plan, cost }) => [...policyArguments(plan.policy, this.#queue.serverNowMs), cost]);
    const [, given] = (await this.#calls.run(
      "give-back",
      keys.map((key) => KEY_PREFIX + key),
      args,
    )) as unknown[];
    this.#refusals?.forget(keys);
    return Number(given) === 1;
  }

  async release(lease: LeaseRequest): Promise<boolean> {
    return (await this.#runLease("release", lease)).some((freed) => freed > 0);
  }

  /** A lease that lost a place in one slot is lost: what it holds in others is given up. */
  async renew(lease: LeaseRequest): Promise<number> {
    const terms = await this.#runLease("renew", lease);
    const shortestMs = Math.min(...terms);
    if (shortestMs === 0 && terms.length > 1) await this.#runLease("release", lease);
    return shortestMs;
  }

  #runLease(step: "release" | "renew", { places }: LeaseRequest): Promise<number[]> {
    const groups = this.#sharded ? groupByTag(places, ({ key }) => key) : [places];
    return Promise.all(
      groups.map(async (group) => {
        const keys = group.map(({ key }) => KEY_PREFIX + key);
        const args = [step, ...group.flatMap((held) => [held.entryId, held.places, held.ttlMs])];
        const [, answer] = (await this.#calls.run("lease", keys, args)) as unknown[];
        return Number(answer);
      }),
    );
  }

  async inspect(checks: readonly Check[]): Promise<Record<string, number>[]> {
    const groups = this.#sharded ? checks.map((check) => [check]) : checks.length === 0 ? [] : [checks];
    const described = await Promise.all(
      groups.map(async (group) => {
        const keys = group.map(({ key }) => KEY_PREFIX + key);
        const letters = group.map(({ plan }) => storedAs[plan.policy.stored]);
        const states = (await this.#calls.run("inspect", keys, letters)) as unknown[];
        return states.map((state) => JSON.parse(String(state)) as Record<string, number>);
      }),
    );
    return described.flat();
  }

  async reset(keys: readonly string[]): Promise<void> {
    this.#refusals?.forget(keys);
    const groups = this.#sharded ? keys.map((key) => [key]) : [keys];
    await Promise.all(
      groups.map((group) =>
        this.#calls.call(
          "DEL",
          group.map((key) => KEY_PREFIX + key),
        ),
      ),
    );
    // A refusal that was under way meanwhile was remembered after the first forgetting.
    this.#refusals?.forget(keys);
  }

  countInstances(): InstanceCount {
    const id = randomUUID();
    return new InstanceCount(async (step, patienceMs) => {
      const [, count] = (await this.#calls.run(
        "instances",
        [KEY_PREFIX + INSTANCES_KEY],
        [step, id, patienceMs],
      )) as unknown[];
      return Number(count);
    });
  }

  async ready(): Promise<boolean> {
    this.whyNotReady = await this.#calls.loadScripts().then(
      () => undefined,
      (error: unknown) => error,
    );
    return this.whyNotReady === undefined;
  }

  stats(): StoreStats {
    return { ...this.#calls.stats(), undos: this.#repayments.undos };
  }

  async close(): Promise<void> {
    await this.#repayments.close();
    await this.#calls.close();
  }
}

/** A store in Redis: `redisStore("redis://127.0.0.1:6379")`, or with an ioredis or node-redis client, single or cluster. */
export function redisStore(target: string | RedisClient, options: RedisStoreOptions = {}): RedisStore {
  // Before a connection is opened that nobody would close.
  const { breakerIntervalMs, deadlineMs } = checkedStoreOptions(options);
  // A connection is not given up while a call on it may still be answered in time.
  const heartbeatMs = Math.max(HEARTBEAT_MS, deadlineMs);
  return new RedisStore(
    redisConnection(target, { tls: options.tls, retryMs: breakerIntervalMs, heartbeatMs }),
    options,
  );
}
