/**
 * The results of a load test: decisions by outcome, errors by kind, latencies.
 * In: each response as it arrives. Out: a report for `--json` and the table. Pure.
 */

import { BenchLatency } from "./bench-latency.js";
import type { ToldDecision } from "./check.js";

/** Bounded, because a server that is not Sluice may invent a new name with every response. */
const MOST_NAMES = 100;

export type BenchAnswer =
  | { readonly decision: ToldDecision }
  /** `waited`: the time to the failure counts as latency (a timeout), unlike an immediately refused connection. */
  | { readonly error: string; readonly waited: boolean };

export interface BenchReport {
  /** Answered or failed. */
  readonly requests: number;
  /** Only those with a decision. */
  readonly requestsPerSecond: number;
  readonly seconds: number;
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number; readonly max: number };
  readonly allowed: number;
  readonly refused: number;
  readonly refusedBy: Readonly<Record<string, number>>;
  readonly degraded: number;
  /** Decisions with a lease or a reservation, which the load test does not release. */
  readonly held: number;
  readonly errors: number;
  readonly errorsBy: Readonly<Record<string, number>>;
  /** Due at the given rate, but never sent. */
  readonly unsent: number;
}

export class BenchFigures {
  private readonly latency = new BenchLatency();
  private readonly refusedBy = new Map<string, number>();
  private readonly errorsBy = new Map<string, number>();
  private allowed = 0;
  private refused = 0;
  private degraded = 0;
  private held = 0;
  private errors = 0;
  private unsent = 0;

  get requests(): number {
    return this.allowed + this.refused + this.errors;
  }

  record(answer: BenchAnswer, tookMs: number): void {
    if ("error" in answer) {
      this.errors++;
      countIn(this.errorsBy, answer.error);
      if (answer.waited) this.latency.record(tookMs);
      return;
    }
    const { allowed, rule, reason, degraded, lease, reservation } = answer.decision;
    this.latency.record(tookMs);
    if (allowed) this.allowed++;
    else {
      this.refused++;
      countIn(this.refusedBy, rule ?? reason ?? "no rule");
    }
    if (degraded !== undefined) this.degraded++;
    if (lease !== undefined || reservation !== undefined) this.held++;
  }

  /** They waited too: without them a service that stalls at the end would look fast. */
  recordUnsent(waitedMs: number, times: number): void {
    this.unsent += times;
    this.latency.record(waitedMs, times);
  }

  report(elapsedMs: number): BenchReport {
    const { latency, allowed, refused, degraded, held, errors, unsent } = this;
    const seconds = elapsedMs / 1_000;
    return {
      requests: this.requests,
      requestsPerSecond: seconds > 0 ? rounded((allowed + refused) / seconds) : 0,
      seconds: rounded(seconds),
      latencyMs: {
        p50: rounded(latency.percentileMs(50)),
        p95: rounded(latency.percentileMs(95)),
        p99: rounded(latency.percentileMs(99)),
        max: rounded(latency.maxMs),
      },
      allowed,
      refused,
      refusedBy: mostFirst(this.refusedBy),
      degraded,
      held,
      errors,
      errorsBy: mostFirst(this.errorsBy),
      unsent,
    };
  }
}

function countIn(counts: Map<string, number>, name: string): void {
  const key = counts.has(name) || counts.size < MOST_NAMES ? name : "others";
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function mostFirst(counts: ReadonlyMap<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a));
}

const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;
