/**
 * The events of a limiter. A listener that throws is reported as a process warning and never disturbs a check.
 */
import { EventEmitter } from "node:events";
import type { Settlement } from "../decision.js";
import type { Rule } from "../rules/rule.js";
import type { LimitMove } from "./adaptive-limits.js";
import type { DecidedRequest } from "./check-request.js";
import type { Decision } from "./decision.js";

export interface LimiterEvents {
  decision: [decision: Decision, request: DecidedRequest];
  /** An outage of the store began; emitted once per outage. `cause`: why the store did not answer. */
  degraded: [cause: unknown];
  /** The outage is over: checks are decided again, and none has failed for 5 s. */
  recovered: [];
  /** New rules are in force, or the same rules under a new version. */
  rules: [rules: readonly Rule[], version: number];
  /** The limit of a rule with `adapt` moved. `leads`: this instance moved it for all. */
  limit: [move: LimitMove];
  /** A lease was released, or renewed for another term, through this limiter. */
  released: [leaseId: string];
  renewed: [leaseId: string, expiresAfterMs: number];
  /** A reservation was settled or cancelled through this limiter; emitted once for each. */
  settled: [reservationId: string, settlement: Settlement];
  /** A reservation of this limiter expired without a settlement: what it held counts as spent. */
  expired: [reservationId: string, held: Readonly<Record<string, number>>];
}

export class LimiterEmitter {
  readonly #emitter = new EventEmitter();
  /** Whether `decision` has a listener. Cached, because every check reads it. */
  hasDecisionListener = false;

  on<E extends keyof LimiterEvents>(event: E, listener: (...args: LimiterEvents[E]) => void): void {
    this.#emitter.on(event, listener);
    this.#countListeners();
  }

  off<E extends keyof LimiterEvents>(event: E, listener: (...args: LimiterEvents[E]) => void): void {
    this.#emitter.off(event, listener);
    this.#countListeners();
  }

  emit<E extends keyof LimiterEvents>(event: E, ...args: LimiterEvents[E]): void {
    try {
      this.#emitter.emit(event, ...args);
    } catch (error) {
      process.emitWarning(`a listener of "${event}" threw: ${String(error)}`, "SluiceWarning");
    }
  }

  #countListeners(): void {
    this.hasDecisionListener = this.#emitter.listenerCount("decision") > 0;
  }
}
