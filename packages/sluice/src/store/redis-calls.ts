/**
 * Calls to Redis that end in time: each is answered by its deadline, or rejected with `store-unavailable`.
 *
 * The exits of a call: breaker open (at once) · not connected (at once, or at the deadline while connecting) · no answer by the
 * deadline · an error from Redis (READONLY, OOM, LOADING ...). NOSCRIPT is mended by sending the script's source, once.
 * A reply that comes after the deadline is dropped: its charge stands in Redis, and a retry with the same request id finds it.
 */
import { createHash } from "node:crypto";
import { SluiceError } from "../errors.js";
import { Breaker } from "./breaker.js";
import { Deadlines } from "./deadlines.js";
import type { Argument, RedisConnection } from "./redis-connection.js";
import { scriptSources } from "./scripts.generated.js";
import { CallCounts, type StoreStats } from "./store-stats.js";

export type ScriptName = keyof typeof scriptSources;

export interface CallOptions {
  deadlineMs: number;
  breakerFailures: number;
  breakerIntervalMs: number;
}

const scriptShas = Object.fromEntries(
  Object.entries(scriptSources).map(([name, source]) => [name, createHash("sha1").update(source).digest("hex")]),
) as Record<ScriptName, string>;

/** Errors by which Redis shows that it is well: what it says is about the call. */
const ANSWERS = /^(NOSCRIPT|WRONGTYPE|(ERR )?CALENDAR) /;

export class RedisCalls {
  readonly #connection: RedisConnection;
  readonly #deadlineMs: number;
  readonly #deadlines: Deadlines;
  readonly #breaker: Breaker;
  readonly counts = new CallCounts();
  #closed = false;

  constructor(connection: RedisConnection, options: CallOptions) {
    this.#connection = connection;
    this.#deadlineMs = options.deadlineMs;
    this.#deadlines = new Deadlines(options.deadlineMs);
    this.#breaker = new Breaker({ failures: options.breakerFailures, intervalMs: options.breakerIntervalMs });
  }

  /** Loads every script, so that no check has to. */
  async loadScripts(): Promise<void> {
    const [first, ...rest] = Object.values(scriptSources);
    // One goes ahead: it is the probe of a breaker that is open, and one failure is enough to know.
    await this.#loadOn(first!);
    await Promise.all(rest.map((source) => this.#loadOn(source)));
  }

  #loadOn(source: string): Promise<unknown> {
    return this.#inTime(() => this.#connection.sendToAll("SCRIPT", ["LOAD", source]));
  }

  run(name: ScriptName, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args];
    return this.call("EVALSHA", [scriptShas[name], ...rest]).catch((error: unknown) => {
      // The script cache is empty: a restart, a failover, SCRIPT FLUSH. Nothing has run, so it can be sent again, once.
      if (!redisSays(error, /^NOSCRIPT /)) throw error;
      return this.call("EVAL", [scriptSources[name], ...rest]);
    });
  }

  call(command: string, args: readonly Argument[]): Promise<unknown> {
    return this.#inTime(() => this.#connection.send(command, args));
  }

  /** The answer by the deadline, or a rejection with `store-unavailable`. */
  #inTime(send: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new SluiceError("closed", "the store is closed"));
      const breaker = this.#breaker;
      if (breaker.open && !breaker.mayCall(performance.now())) {
        this.counts.spared++;
        return reject(unavailable("it did not answer lately", this.#connection.lastError()));
      }
      const sinceMs = performance.now();
      // An answer after the deadline is nobody's any more; that it came does not show that the next would come in time.
      let over = false;
      let sent = false;
      const fail = (error: unknown): void => {
        if (over) return;
        over = true;
        deadline.end();
        this.#ended(sinceMs);
        if (error instanceof Error && ANSWERS.test(error.message)) breaker.succeeded();
        else {
          this.counts.errors++;
          breaker.failed(performance.now());
        }
        reject(error instanceof SluiceError ? error : unavailable(messageOf(error), error, sent));
      };
      const deadline = this.#deadlines.watch(() =>
        fail(unavailable(`no answer within ${this.#deadlineMs} ms`, undefined, sent)),
      );
      const sending = (): Promise<unknown> => {
        sent = true;
        return send();
      };
      this.#whenConnected(sending).then((answer) => {
        if (over) return;
        over = true;
        deadline.end();
        this.#ended(sinceMs);
        breaker.succeeded();
        resolve(answer);
      }, fail);
    });
  }

  #whenConnected(send: () => Promise<unknown>): Promise<unknown> {
    const state = this.#connection.state();
    if (state === "ready") return send();
    if (state === "connecting") return this.#connection.changed().then(() => this.#whenConnected(send));
    return Promise.reject(unavailable("not connected", this.#connection.lastError()));
  }

  #ended(sinceMs: number): void {
    this.counts.calls++;
    this.counts.latencyMs.add(performance.now() - sinceMs);
  }

  stats(): StoreStats {
    return this.counts.read(this.#breaker.state);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#connection.close();
  }
}

/** Whether a failed call failed because Redis said something that matches. */
export function redisSays(error: unknown, pattern: RegExp): RegExpExecArray | null {
  const cause = error instanceof SluiceError ? error.cause : error;
  return cause instanceof Error ? pattern.exec(cause.message) : null;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function unavailable(why: string, cause?: unknown, mayHaveRun = false): SluiceError {
  const because = cause === undefined || messageOf(cause) === why ? "" : ` (${messageOf(cause)})`;
  return new SluiceError("store-unavailable", `Redis: ${why}${because}`, { cause, mayHaveRun });
}
