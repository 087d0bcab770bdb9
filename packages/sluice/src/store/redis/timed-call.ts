/**
 * One call to Redis in flight. It ends once: with its answer, an error, or its deadline. Each outcome is reported to its circuit breaker
 * and the counts.
 */
import { SluiceError } from "../../errors.js";
import type { CallCounts } from "../store-stats.js";
import type { CircuitBreaker } from "./circuit-breaker.js";
import type { RedisConnection } from "./connection.js";
import type { Deadlines } from "./deadlines.js";
import { fullMessage, isAboutTheCall, unavailable } from "./failure.js";

/** Nothing was sent and nobody waited: the breaker has nothing to save, and the client reports when it is connected again. */
const NOT_CONNECTED = Symbol("not connected");
/** How clients report a broken connection; an earlier error, or the next attempt, names the cause. */
const CLOSED = /^(Connection is closed|Reached the max retries per request|Stream isn't writeable|Command aborted)/;

/** What all calls of a store share. */
export interface CallContext {
  readonly connection: RedisConnection;
  readonly deadlines: Deadlines;
  readonly counts: CallCounts;
  readonly deadlineMs: number;
  /** The most a call may wait in total when this process is late rather than Redis. */
  readonly mostMs: number;
}

interface TimedCallOptions {
  readonly node: string;
  readonly breaker: CircuitBreaker;
  readonly send: () => Promise<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** By default the call gets a full deadline. */
  readonly endsAtMonotonicMs: number | undefined;
}

export class TimedCall {
  readonly #context: CallContext;
  readonly #options: TimedCallOptions;
  readonly #sinceMonotonicMs = performance.now();
  #sentAtMonotonicMs: number | undefined;
  #isCold: boolean;
  #deadline: { end(): void };
  #over = false;

  /** Sends the call as soon as there is a connection. */
  constructor(context: CallContext, options: TimedCallOptions) {
    this.#context = context;
    this.#options = options;
    const { connection, deadlines } = context;
    const { node, endsAtMonotonicMs } = options;
    const late = (): void => this.#late();
    this.#isCold = connection.isCold(node);
    this.#deadline =
      endsAtMonotonicMs === undefined ? deadlines.watch(late) : deadlines.watchUntil(endsAtMonotonicMs, late);
    this.#begin().then(
      (answer) => this.#succeed(answer),
      (error) => this.#fail(error),
    );
  }

  /** A client that throws, or returns no promise, counts as one that rejects: at once, and visible to the breaker. */
  #begin(): Promise<unknown> {
    try {
      return Promise.resolve(this.#sendWhenConnected());
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #sendWhenConnected(): Promise<unknown> {
    const { connection } = this.#context;
    const state = connection.state();
    if (state === "ready") {
      this.#sentAtMonotonicMs = performance.now();
      return this.#options.send();
    }
    if (state === "connecting") return connection.changed().then(() => this.#sendWhenConnected());
    return Promise.reject(NOT_CONNECTED);
  }

  #succeed(answer: unknown): void {
    if (!this.#end()) return;
    this.#options.breaker.succeeded();
    this.#options.resolve(answer);
  }

  #fail(error: unknown): void {
    if (!this.#end()) return;
    const { connection, counts } = this.#context;
    const { breaker, reject } = this.#options;
    const sentAtMonotonicMs = this.#sentAtMonotonicMs;
    if (isAboutTheCall(error)) breaker.succeeded();
    else {
      counts.errors++;
      if (error !== NOT_CONNECTED) breaker.failed(performance.now(), error, sentAtMonotonicMs);
      // Our own errors mean that the call got no answer.
      connection.lookAgain(breaker.open && error instanceof SluiceError ? sentAtMonotonicMs : undefined);
    }
    reject(this.#errorOf(error));
  }

  #errorOf(error: unknown): SluiceError {
    if (error instanceof SluiceError) return error;
    const { connection } = this.#context;
    const wasSent = this.#sentAtMonotonicMs !== undefined;
    if (error === NOT_CONNECTED) return unavailable("not connected", connection.lastError());
    if (error instanceof Error && CLOSED.test(error.message)) {
      return unavailable("the connection broke", connection.lastError(), wasSent);
    }
    return unavailable(fullMessage(error), error, wasSent);
  }

  #late(): void {
    const { connection, deadlines, deadlineMs, mostMs } = this.#context;
    const nowMonotonicMs = performance.now();
    const lastMonotonicMs = this.#sinceMonotonicMs + mostMs;
    if (this.#isCold && nowMonotonicMs < lastMonotonicMs) {
      // Extend once more after the connection is made: only then was the call sent.
      this.#isCold = connection.isCold(this.#options.node);
      const endsAtMonotonicMs = Math.min(nowMonotonicMs + deadlineMs, lastMonotonicMs);
      this.#deadline = deadlines.watchUntil(endsAtMonotonicMs, () => this.#late());
      return;
    }
    const waited = `${Math.round(nowMonotonicMs - this.#sinceMonotonicMs)} ms`;
    if (this.#sentAtMonotonicMs !== undefined) this.#fail(unavailable(`no answer within ${waited}`, undefined, true));
    else this.#fail(unavailable(`not connected within ${waited}`, connection.lastError()));
  }

  /** False if the call is already over: an answer after the deadline is dropped, and is no evidence that the next one would be in time. */
  #end(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.#deadline.end();
    const { counts } = this.#context;
    counts.calls++;
    counts.latencyMs.add(performance.now() - this.#sinceMonotonicMs);
    return true;
  }
}
