/**
 * Observes each answered request: counts, latency, and a trace span if it is sampled.
 * On the path of every request: with monitoring off and no collector, an observer is a no-op.
 */
import type { Decision } from "sluice";
import type { Outcome, RequestCounts, Transport } from "./request-counts.js";

/** Captured when the request arrives. */
interface Arrival {
  /** performance.now() */
  readonly sinceMs: number;
  /** The caller's raw header. */
  readonly traceparent: string | string[] | undefined;
}

/** An answered request, for a span. */
export interface TracedRequest extends Arrival {
  readonly transport: Transport;
  readonly allowed: boolean;
  /** If the transport has one. */
  readonly decision?: Decision | undefined;
}

export interface RequestObserver {
  /** The limiter decided, and the client gets that decision. */
  decided(decision: Decision, arrival: Arrival): void;
  /** The answer is not the limiter's decision, or there is none. */
  answered(answer: Outcome & { readonly decision?: Decision }, arrival: Arrival): void;
  /** Undefined for an invalid request. All are counted; the batch gets a single span. */
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
    // These wait for a request's turn themselves (`maxWait`): that is intended waiting, not decision latency.
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
