/**
 * The store for a fleet: counters in Redis, each decision one script.
 *
 * The life of a decision here:
 *   decide() queues -> at the end of this turn of the event loop all that came share one EVALSHA -> reply -> verdicts
 * and its error exits, each `store-unavailable`:
 *   breaker open (at once) · not connected (at once, or at the deadline while connecting) · no answer by the deadline ·
 *   an error from Redis (READONLY, OOM, LOADING ...). NOSCRIPT is mended by sending the source once.
 * A reply that comes after the deadline is dropped: its charge stands in Redis, and a retry with the same id finds it.
 */
import { createHash } from "node:crypto";
import type { Policy } from "../algorithms/policy.js";
import type { Check } from "../check.js";
import { SluiceError } from "../errors.js";
import { KEY_PREFIX, requestIdKey, storedAs } from "../keys.js";
import { Breaker } from "./breaker.js";
import { type Argument, type RedisClient, type RedisConnection, redisConnection } from "./redis-connection.js";
import { scriptSources } from "./scripts.generated.js";
import type { LeaseRequest, RefundRequest, Store, StoreReply, StoreRequest } from "./store.js";
import { type Addressed, decodeDecide, decodeRecord, encodeDecide, policyArguments } from "./wire.js";

export interface RedisStoreOptions {
  /** How long a call may take before the rule's failure policy answers. Default 50. */
  deadlineMs?: number;
  /** Calls failing in a row that stop further calls. Default 3. */
  breakerFailures?: number;
  /** How often a store that does not answer is tried again. Default 500. */
  breakerIntervalMs?: number;
}

interface Waiting {
  readonly addressed: Addressed;
  readonly resolve: (reply: StoreReply) => void;
  readonly reject: (error: unknown) => void;
}

type ScriptName = keyof typeof scriptSources;

const scriptShas = Object.fromEntries(
  Object.entries(scriptSources).map(([name, source]) => [name, createHash("sha1").update(source).digest("hex")]),
) as Record<ScriptName, string>;

/** Bounds what one script call may hold up Redis for. */
const MAX_REQUESTS_PER_CALL = 128;
/** On a single Redis all keys are within one script's reach, whatever their tags. */
const SHARED_TAG = "*";

export class RedisStore implements Store {
  readonly #connection: RedisConnection;
  readonly #deadlineMs: number;
  readonly #breaker: Breaker;
  #waiting: Waiting[] = [];
  /** Redis's clock minus ours, from the last reply: only calendar boundaries depend on it. */
  #clockAheadMs = 0;
  #closed = false;

  constructor(connection: RedisConnection, options: RedisStoreOptions = {}) {
    this.#connection = connection;
    this.#deadlineMs = options.deadlineMs ?? 50;
    this.#breaker = new Breaker({
      failures: options.breakerFailures ?? 3,
      intervalMs: options.breakerIntervalMs ?? 500,
    });
  }

  decide(request: StoreRequest): Promise<StoreReply> {
    return new Promise((resolve, reject) => {
      const recordKey = request.id === undefined ? undefined : requestIdKey(request.id, SHARED_TAG);
      if (this.#waiting.length === 0) setImmediate(() => this.#flush());
      this.#waiting.push({ addressed: { request, recordKey }, resolve, reject });
    });
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (let first = 0; first < waiting.length; first += MAX_REQUESTS_PER_CALL) {
      void this.#decideTogether(waiting.slice(first, first + MAX_REQUESTS_PER_CALL));
    }
  }

  async #decideTogether(batch: readonly Waiting[]): Promise<void> {
    try {
      const again: Waiting[] = [];
      const { nowMs, replies } = await this.#callDecide(batch);
      for (let i = 0; i < batch.length; i++) {
        const reply = replies[i]!;
        if (reply === "calendar") again.push(batch[i]!);
        else if (reply === "foreign") batch[i]!.reject(foreignKey());
        else batch[i]!.resolve(reply);
      }
      if (again.length === 0) return;
      // Our clock was more than a window off; the reply told the server's, so the boundaries are right now.
      this.#clockAheadMs = nowMs - Date.now();
      const second = await this.#callDecide(again);
      for (let i = 0; i < again.length; i++) {
        const reply = second.replies[i]!;
        if (typeof reply === "string") again[i]!.reject(foreignKey());
        else again[i]!.resolve(reply);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  async #callDecide(batch: readonly Waiting[]): Promise<ReturnType<typeof decodeDecide>> {
    const addressed = batch.map((waiting) => waiting.addressed);
    const { keys, args } = encodeDecide(addressed, Date.now() + this.#clockAheadMs);
    const decoded = decodeDecide((await this.#run("decide", keys, args)) as unknown[], addressed);
    this.#clockAheadMs = decoded.nowMs - Date.now();
    return decoded;
  }

  async recall(id: string): Promise<StoreReply | undefined> {
    const record = await this.#call("GET", [KEY_PREFIX + requestIdKey(id, SHARED_TAG)]);
    return typeof record === "string" ? decodeRecord(record) : undefined;
  }

  async refund({ checks, entryId, chargedAtMs, id }: RefundRequest): Promise<boolean> {
    const records = id === undefined ? [] : [KEY_PREFIX + requestIdKey(id, SHARED_TAG)];
    const keys = [...records, ...checks.map((check) => KEY_PREFIX + check.key)];
    const args: Argument[] = [records.length, checks.length];
    for (let i = 0; i < checks.length; i++) {
      const { plan, cost } = checks[i]!;
      args.push(records.length + i + 1, ...this.#policyArguments(plan.policy), cost, chargedAtMs, entryId);
    }
    const [, given] = (await this.#run("refund", keys, args)) as number[];
    return given === 1;
  }

  #policyArguments(policy: Policy): Argument[] {
    return policyArguments(policy, Date.now() + this.#clockAheadMs);
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
    const [, answer] = (await this.#run("lease", keys, args)) as number[];
    return answer!;
  }

  async inspect(checks: readonly Check[]): Promise<Record<string, number>[]> {
    if (checks.length === 0) return [];
    const keys = checks.map(({ key }) => KEY_PREFIX + key);
    const letters = checks.map(({ plan }) => storedAs[plan.policy.stored]);
    const states = (await this.#run("inspect", keys, letters)) as string[];
    return states.map((state) => JSON.parse(state) as Record<string, number>);
  }

  async reset(keys: readonly string[]): Promise<void> {
    await this.#call(
      "DEL",
      keys.map((key) => KEY_PREFIX + key),
    );
  }

  async ready(): Promise<boolean> {
    try {
      await Promise.all(Object.values(scriptSources).map((source) => this.#call("SCRIPT", ["LOAD", source])));
      return true;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#connection.close();
  }

  async #run(name: ScriptName, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args];
    try {
      return await this.#call("EVALSHA", [scriptShas[name], ...rest]);
    } catch (error) {
      // The script cache is empty: a restart, a failover, SCRIPT FLUSH. Nothing has run, so it can be sent again, once.
      const cause = error instanceof SluiceError ? error.cause : error;
      if (!(cause instanceof Error) || !cause.message.startsWith("NOSCRIPT")) throw error;
      return await this.#call("EVAL", [scriptSources[name], ...rest]);
    }
  }

  /** One command, answered by the deadline or rejected with `store-unavailable`. */
  async #call(command: string, args: readonly Argument[]): Promise<unknown> {
    if (this.#closed) throw new SluiceError("closed", "the store is closed");
    if (!this.#breaker.mayCall(performance.now()))
      throw unavailable("it did not answer lately", this.#connection.lastError());
    let deadline: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      deadline = setTimeout(() => reject(unavailable(`no answer within ${this.#deadlineMs} ms`)), this.#deadlineMs);
    });
    try {
      const answer = await Promise.race([this.#send(command, args), late]);
      this.#breaker.succeeded();
      return answer;
    } catch (error) {
      if (isNoScript(error)) this.#breaker.succeeded();
      else this.#breaker.failed(performance.now());
      throw error instanceof SluiceError ? error : unavailable(messageOf(error), error);
    } finally {
      clearTimeout(deadline);
    }
  }

  async #send(command: string, args: readonly Argument[]): Promise<unknown> {
    while (this.#connection.state() === "connecting") await this.#connection.changed();
    if (this.#connection.state() === "down") throw unavailable("not connected", this.#connection.lastError());
    return await this.#connection.send(command, args);
  }
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function unavailable(why: string, cause?: unknown): SluiceError {
  const because = cause === undefined ? "" : ` (${messageOf(cause)})`;
  return new SluiceError("store-unavailable", `Redis: ${why}${because}`, { cause });
}

function foreignKey(): SluiceError {
  return new SluiceError(
    "store-unavailable",
    `Redis: a key under "${KEY_PREFIX}" holds something that Sluice did not write`,
  );
}

/** A store in Redis: `redisStore("redis://127.0.0.1:6379")`, or with an ioredis or node-redis client. */
export function redisStore(target: string | RedisClient, options?: RedisStoreOptions): RedisStore {
  return new RedisStore(redisConnection(target), options);
}
