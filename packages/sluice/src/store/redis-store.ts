/**
 * The store for a fleet: counters in Redis, each decision one script.
 *
 * The life of a decision: decide() queues (`decide-queue.ts`) -> at the end of this turn of the event loop all that came share
 * script calls (`wire.ts` spells them) -> each call ends in time (`redis-calls.ts`) -> verdicts.
 */
import type { Check } from "../check.js";
import { KEY_PREFIX, requestIdKey, storedAs } from "../keys.js";
import { DecideQueue } from "./decide-queue.js";
import { RedisCalls } from "./redis-calls.js";
import { type Argument, type RedisClient, type RedisConnection, redisConnection } from "./redis-connection.js";
import { RefusalMemory } from "./refusal-memory.js";
import type { LeaseRequest, MaybePromise, RefundRequest, Store, StoreReply, StoreRequest } from "./store.js";
import { decodeRecord, policyArguments } from "./wire.js";

export interface RedisStoreOptions {
  /** How long a call may take before the rule's failure policy answers. Default 50. */
  deadlineMs?: number;
  /** Calls failing in a row that stop further calls. Default 3. */
  breakerFailures?: number;
  /** How often a store that does not answer is tried again. Default 500. */
  breakerIntervalMs?: number;
  /** Whether a refusal with a known end is answered here until then, for a second at most. Default true. */
  rememberRefusals?: boolean;
}

/** On a single Redis all keys are within one script's reach, whatever their tags. */
const SHARED_TAG = "*";

export class RedisStore implements Store {
  readonly #calls: RedisCalls;
  readonly #queue: DecideQueue;
  readonly #refusals: RefusalMemory | undefined;

  constructor(connection: RedisConnection, options: RedisStoreOptions = {}) {
    const { deadlineMs = 50, breakerFailures = 3, breakerIntervalMs = 500, rememberRefusals = true } = options;
    this.#refusals = rememberRefusals ? new RefusalMemory() : undefined;
    this.#calls = new RedisCalls(connection, { deadlineMs, breakerFailures, breakerIntervalMs });
    this.#queue = new DecideQueue(this.#calls);
  }

  decide(request: StoreRequest): MaybePromise<StoreReply> {
    const refusals = this.#refusals;
    const recordKey = request.id === undefined ? undefined : requestIdKey(request.id, SHARED_TAG);
    if (refusals === undefined) return this.#queue.add(request, recordKey);
    const sinceMs = performance.now();
    const refused = refusals.recall(request, sinceMs);
    if (refused !== undefined) return refused;
    return this.#queue.add(request, recordKey).then((reply) => {
      refusals.remember(request, reply, sinceMs);
      return reply;
    });
  }

  async recall(id: string): Promise<StoreReply | undefined> {
    const record = await this.#calls.call("GET", [KEY_PREFIX + requestIdKey(id, SHARED_TAG)]);
    return typeof record === "string" ? decodeRecord(record, this.#queue.serverNowMs) : undefined;
  }

  async refund({ checks, entryId, chargedAtMs, id }: RefundRequest): Promise<boolean> {
    const records = id === undefined ? [] : [KEY_PREFIX + requestIdKey(id, SHARED_TAG)];
    const keys = [...records, ...checks.map((check) => KEY_PREFIX + check.key)];
    const args: Argument[] = [records.length, checks.length];
    for (let i = 0; i < checks.length; i++) {
      const { plan, cost } = checks[i]!;
      const policy = policyArguments(plan.policy, this.#queue.serverNowMs);
      args.push(records.length + i + 1, ...policy, cost, chargedAtMs, entryId);
    }
    const [, given] = (await this.#calls.run("refund", keys, args)) as number[];
    this.#refusals?.forget(checks.map(({ key }) => key));
    return given === 1;
  }

  async release(lease: LeaseRequest): Promise<boolean> {
    return (await this.#runLease("release", lease)) > 0;
  }

  renew(lease: LeaseRequest): Promise<number> {
    return this.#runLease("renew", lease);
  }

  async #runLease(step: "release" | "renew", { entryId, places }: LeaseRequest): Promise<number> {
    const keys = places.map(({ key }) => KEY_PREFIX + key);
    const args = [step, entryId, ...places.flatMap((held) => [held.places, held.ttlMs])];
    const [, answer] = (await this.#calls.run("lease", keys, args)) as number[];
    return answer!;
  }

  async inspect(checks: readonly Check[]): Promise<Record<string, number>[]> {
    if (checks.length === 0) return [];
    const keys = checks.map(({ key }) => KEY_PREFIX + key);
    const letters = checks.map(({ plan }) => storedAs[plan.policy.stored]);
    const states = (await this.#calls.run("inspect", keys, letters)) as string[];
    return states.map((state) => JSON.parse(state) as Record<string, number>);
  }

  async reset(keys: readonly string[]): Promise<void> {
    this.#refusals?.forget(keys);
    await this.#calls.call(
      "DEL",
      keys.map((key) => KEY_PREFIX + key),
    );
  }

  async ready(): Promise<boolean> {
    return await this.#calls.loadScripts().then(
      () => true,
      () => false,
    );
  }

  close(): Promise<void> {
    return this.#calls.close();
  }
}

/** A store in Redis: `redisStore("redis://127.0.0.1:6379")`, or with an ioredis or node-redis client. */
export function redisStore(target: string | RedisClient, options?: RedisStoreOptions): RedisStore {
  return new RedisStore(redisConnection(target), options);
}
