/**
 * Observes each request that a transport answered: counts and latency, and a span where the request is sampled.
 * On the path of every request: with monitoring off and no collector, an observer does nothing.
 */
import type { Decision } from "sluice";
import type { Outcome, RequestCounts, Transport } from "./request-counts.js";

/** Taken when the request came. */
interface Arrival {
  /** performance.now() */
  readonly sinceMs: number;
  /** The caller's header, as it came. */
  readonly traceparent: string | string[] | undefined;
}

/** A request that was answered, for a span. */
export interface TracedRequest extends Arrival {
  readonly transport: Transport;
  readonly allowed: boolean;
  /** Where the transport has one. */
  readonly decision?: Decision | undefined;
}

export interface RequestObserver {
  /** The limiter decided, and the client gets its decision. */
  decided(decision: Decision, arrival: Arrival): void;
  /** Where the answer is not the limiter's own, or there is none. */
  answered(answer: Outcome & { readonly decision?: Decision }, arrival: Arrival): void;
  /** Undefined for a request that was a mistake. All are counted; one span stands for the batch. */
  batchDecided(decisions: readonly (Decision | undefined)[], arrival: Arrival): void;
}

export type Observe = (transport: Transport) => RequestObserver;

export function observeRequests({
  requests,
  trace,
}: {
  /** Absent with monitoring off. */
  readonly requests: RequestCounts | undefined;
  /** Present with --otlp. */
  readonly trace: ((request: TracedRequest) => void) | undefined;
}): Observe {
  return (transport) => {
    // These wait for the request's turn themselves (`maxWait`): the wait is asked for, and no latency of the decision.
    const waits = transport === "forward-auth" || transport === "proxy";
    const count = (outcome: Outcome, sinceMs: number, delayMs = 0): void =>
      requests?.add(transport, outcome, Math.max(0, performance.now() - sinceMs - (waits ? delayMs : 0)));
    return {
      decided(decision, { sinceMs, traceparent }) {
        const { allowed, delayMs } = decision;
        count({ allowed, matched: decision.checks.length > 0 }, sinceMs, delayMs);
        trace?.({ transport, allowed, sinceMs, traceparent, decision });
      },
      answered({ allowed, matched, decision }, { sinceMs, traceparent }) {
        count({ allowed, matched }, sinceMs);
        trace?.({ transport, allowed, sinceMs, traceparent, decision });
      },
      batchDecided(decisions, { sinceMs, traceparent }) {
        for (const decision of decisions) {
          if (decision !== undefined) {
            count({ allowed: decision.allowed, matched: decision.checks.length > 0 }, sinceMs);
          }
        }
        const allowed = decisions.every((decision) => decision?.allowed === true);
        trace?.({ transport, allowed, sinceMs, traceparent });
      },
    };
  };
}
