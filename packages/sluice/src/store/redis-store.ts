/**
 * The store for a fleet: counters in Redis, each decision one script.
 *
 * The life of a decision: decide() queues (`decide-queue.ts`) -> at the end of this turn of the event loop all that came share
 * script calls (`wire.ts` spells them) -> each call ends in time (`redis-calls.ts`) -> verdicts.
 */
import { randomUUID } from "node:crypto";
import type { Check } from "../check.js";
import { hashTag, INSTANCES_KEY, KEY_PREFIX, requestIdKey, requestPlaceKey, storedAs } from "../keys.js";
import { DecideQueue, slotIsMoving } from "./decide-queue.js";
import { InstanceCount } from "./instance-count.js";
import { RedisCalls } from "./redis-calls.js";
import { type Argument, type RedisClient, type RedisConnection, redisConnection } from "./redis-connection.js";
import { checkedStoreOptions, type RedisStoreOptions } from "./redis-store-options.js";
import { RefusalMemory } from "./refusal-memory.js";
import { groupByTag, joinReplies, type Part, splitByKey, splitByTag } from "./split-by-tag.js";
import {
  type LeaseRequest,
  type MaybePromise,
  REMEMBER_MS,
  type RefundRequest,
  type Store,
  type StoreReply,
  type StoreRequest,
} from "./store.js";
import type { StoreStats } from "./store-stats.js";
import { decodeRecord, encodeRecord, policyArguments, recordText } from "./wire.js";

/** On a single Redis all keys are within one script's reach, whatever their tags. */
const SHARED_TAG = "*";
const HEARTBEAT_MS = 1_000;
const MOVING_MS = 250;
const MOST_MOVING_TAGS = 1_024;

export class RedisStore implements Store {
  readonly #calls: RedisCalls;
  readonly #queue: DecideQueue;
  readonly #refusals: RefusalMemory | undefined;
  readonly #moving = new MovingTags();
  whyNotReady: unknown;
  readonly #sharded: boolean;

  constructor(connection: RedisConnection, options: RedisStoreOptions = {}) {
    const checked = checkedStoreOptions(options);
    this.#refusals = checked.rememberRefusals ? new RefusalMemory() : undefined;
    this.#sharded = connection.sharded;
    this.#calls = new RedisCalls(connection, checked);
    this.#queue = new DecideQueue(this.#calls, connection.sharded);
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
    if (!this.#sharded) return this.#queue.add(request, recordKey(request.id, SHARED_TAG));
    const endsAtMs = this.#calls.endOf();
    const parts = splitByTag(request);
    const [only] = parts;
    if (parts.length > 1 || request.id !== undefined) return this.#decideInParts(request, parts, endsAtMs);
    return this.#decidePart(only!, endsAtMs);
  }

  /** What lies under one tag, in one script; or key by key, while its slot is on its way to another node. */
  #decidePart({ tag, request }: Part, endsAtMs: number): Promise<StoreReply> {
    if (this.#moving.has(tag)) return this.#decideKeyByKey(tag, request, endsAtMs);
    return this.#queue.add(request, recordKey(request.id, tag)).catch((error: unknown) => {
      if (!slotIsMoving(error)) throw error;
      this.#moving.add(tag);
      return this.#decideKeyByKey(tag, request, endsAtMs);
    });
  }

  /** Slot by slot, in parallel; if one part refuses, the others give back what they charged. */
  async #decideInParts(request: StoreRequest, parts: readonly Part[], endsAtMs: number): Promise<StoreReply> {
    const { id } = request;
    const located = id !== undefined && request.charge ? [this.#locate(id, parts)] : [];
    const [settled] = await Promise.all([
      Promise.allSettled(parts.map((part) => this.#decidePart(part, endsAtMs))),
      // Only a refund by the id alone looks for it: without it the decision stands all the same.
      Promise.allSettled(located),
    ]);
    return await this.#settle(parts, settled, endsAtMs);
  }

  /** The parts' outcomes as one reply. Nothing may stay charged for a request that was refused, or that cannot be decided. */
  async #settle(
    parts: readonly Part[],
    settled: readonly PromiseSettledResult<StoreReply>[],
    endsAtMs: number,
  ): Promise<StoreReply> {
    const failure = settled.find((outcome) => outcome.status === "rejected");
    const replies = settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    if (failure !== undefined) {
      // The failure policy will answer.
      const answered = parts.filter((_, i) => settled[i]!.status === "fulfilled");
      await Promise.allSettled(answered.map((part, i) => this.#undo(part, replies[i]!, endsAtMs)));
      throw failure.reason;
    }
    if (parts.length === 1) return replies[0]!;
    const { reply, refunds } = joinReplies(parts, replies);
    // A refund that is lost makes a counter stricter than it should be; the refusal stands, and nobody waits for it.
    await Promise.allSettled(refunds.map((refund) => this.#refundPart(refund, endsAtMs)));
    return reply;
  }

  /**
   * Redis runs no script with several keys while some of them are on another node. One key at a time it does, there or here; so
   * nothing goes uncounted while slots move. What is given up is the atomic look at the id: of two requests with one id that
   * arrive at the same time, both may be charged.
   */
  async #decideKeyByKey(tag: string, request: StoreRequest, endsAtMs: number): Promise<StoreReply> {
    const record = recordKey(request.id, tag);
    if (record !== undefined) {
      const seen = recordText(await this.#calls.call("GET", [KEY_PREFIX + record], endsAtMs));
      if (seen !== undefined) return decodeRecord(seen, this.#queue.serverNowMs);
    }
    const parts = splitByKey(request);
    const settled = await Promise.allSettled(parts.map((part) => this.#queue.addApart(part.request, endsAtMs)));
    const reply = await this.#settle(parts, settled, endsAtMs);
    if (record !== undefined && request.charge) {
      const text = encodeRecord(request, reply);
      await this.#calls
        .call("SET", [KEY_PREFIX + record, text, "NX", "PX", REMEMBER_MS], endsAtMs)
        // The decision is made; a repetition of it would be charged anew.
        .catch(() => {});
    }
    return reply;
  }

  #undo({ request }: Part, reply: StoreReply, endsAtMs: number): Promise<boolean> {
    const checks = request.checks.filter((_, i) => reply.repeated === undefined && reply.verdicts[i]!.charged);
    if (checks.length === 0) return Promise.resolve(false);
    const charges = checks.map((check) => ({ check, atMs: reply.nowMs }));
    return this.#refundPart({ entryId: request.entryId, charges, id: request.id }, endsAtMs);
  }

  /** On a cluster a request's records lie beside its counters; under its id alone stands where. */
  #locate(id: string, parts: readonly Part[]): Promise<unknown> {
    const tags = JSON.stringify(parts.map(({ tag }) => tag));
    return this.#calls.call("SET", [KEY_PREFIX + requestPlaceKey(id), tags, "PX", REMEMBER_MS]);
  }

  async #tagsOf(id: string): Promise<string[]> {
    if (!this.#sharded) return [SHARED_TAG];
    const tags = await this.#calls.call("GET", [KEY_PREFIX + requestPlaceKey(id)]);
    return tags === null || tags === undefined ? [] : (JSON.parse(String(tags)) as string[]);
  }

  async recall(id: string): Promise<StoreReply | undefined> {
    const tags = await this.#tagsOf(id);
    const records = await Promise.all(tags.map((tag) => this.#calls.call("GET", [KEY_PREFIX + requestIdKey(id, tag)])));
    const replies = records
      .map(recordText)
      .filter((record) => record !== undefined)
      .map((record) => decodeRecord(record, this.#queue.serverNowMs));
    const [first, ...rest] = replies;
    if (first?.repeated === undefined) return undefined;
    return {
      ...first,
      verdicts: [first, ...rest].flatMap(({ verdicts }) => verdicts),
      timesMs: [first, ...rest].flatMap(({ verdicts, nowMs }) => verdicts.map(() => nowMs)),
      repeated: { ...first.repeated, checks: [first, ...rest].flatMap(({ repeated }) => repeated!.checks) },
    };
  }

  async refund(request: RefundRequest): Promise<boolean> {
    const parts = this.#sharded
      ? groupByTag(request.charges, ({ check }) => check.key).map((charges) => ({ ...request, charges }))
      : [request];
    const given = await Promise.all(parts.map((part) => this.#refundPart(part)));
    return given.includes(true);
  }

  async #refundPart({ charges, entryId, id }: RefundRequest, endsAtMs?: number): Promise<boolean> {
    const record = recordKey(id, this.#sharded ? hashTag(charges[0]!.check.key) : SHARED_TAG);
    const records = record === undefined ? [] : [KEY_PREFIX + record];
    const keys = [...records, ...charges.map(({ check }) => KEY_PREFIX + check.key)];
    const args: Argument[] = [records.length, charges.length];
    for (let i = 0; i < charges.length; i++) {
      const { plan, cost } = charges[i]!.check;
      const policy = policyArguments(plan.policy, this.#queue.serverNowMs);
      args.push(records.length + i + 1, ...policy, cost, charges[i]!.atMs, entryId);
    }
    const [, given] = (await this.#calls.run("refund", keys, args, endsAtMs)) as unknown[];
    this.#refusals?.forget(charges.map(({ check }) => check.key));
    return Number(given) === 1;
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

  #runLease(step: "release" | "renew", { entryId, places }: LeaseRequest): Promise<number[]> {
    const groups = this.#sharded ? groupByTag(places, ({ key }) => key) : [places];
    return Promise.all(
      groups.map(async (group) => {
        const keys = group.map(({ key }) => KEY_PREFIX + key);
        const args = [step, entryId, ...group.flatMap((held) => [held.places, held.ttlMs])];
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
    return this.#calls.stats();
  }

  close(): Promise<void> {
    return this.#calls.close();
  }
}

/** Tags whose slots were found on the move: for a moment, requests for them are not tried as a whole first. */
class MovingTags {
  readonly #untilMs = new Map<string, number>();

  add(tag: string): void {
    // Slots move one by one; a full map is one of old entries.
    if (this.#untilMs.size === MOST_MOVING_TAGS) this.#untilMs.clear();
    this.#untilMs.set(tag, performance.now() + MOVING_MS);
  }

  has(tag: string): boolean {
    if (this.#untilMs.size === 0) return false;
    const untilMs = this.#untilMs.get(tag);
    if (untilMs === undefined) return false;
    if (untilMs > performance.now()) return true;
    this.#untilMs.delete(tag);
    return false;
  }
}

function recordKey(id: string | undefined, tag: string): string | undefined {
  return id === undefined ? undefined : requestIdKey(id, tag);
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
