/**
 * Decides whether a request is shed, in process, before anything is counted. In: the load-shedding rules that match a request, requests'
 * ends, utilisation reports. Out: an admission: the answer of each rule, and the place that an admitted request holds until its end. A shed
 * request has cost no round trip and is charged nowhere.
 */
import type { CheckResult } from "../decision.js";
import type { Attributes, LoadSignal } from "../rules/rule.js";
import type { SheddingBook, SheddingMatch } from "../rules/shedding-book.js";
import { RequestArrival } from "./arrival.js";
import { EventLoop } from "./event-loop.js";
import { type GaugeSlot, Gauges } from "./gauges.js";
import { Places, type RequestEnd } from "./places.js";
import { UtilisationReports } from "./utilisation-reports.js";

export interface Admission {
  /** One per rule that applied. */
  readonly results: readonly CheckResult[];
  readonly refused: boolean;
  /** The id of the place in flight, if a rule counts requests in flight and this one was admitted. */
  readonly place: string | undefined;
}

interface LoadShedderOptions {
  /** Monotonic. */
  readonly now: () => number;
  readonly random?: () => number;
  /** Makes the id of a place, which must be unguessable. */
  readonly newId: () => string;
  /** The integral over time of how late this process is (`loop-lateness.ts`). Without it the process is assumed to be punctual. */
  readonly lateness?: (() => number) | undefined;
}

/** What kind of admission is requested. */
interface AdmissionRequest {
  /** Only looks: takes no place, and is not counted. */
  readonly looks: boolean;
  /** Whether the caller will report the end of the request; if not, the request is judged but takes no place. */
  readonly holds: boolean;
}

/** What one rule sheds, over all its gauges. */
export interface SheddingStats {
  readonly rule: string;
  /** That of its busiest gauge. */
  readonly utilisation: number;
  /** By signal, each that of the busiest gauge; absent if unknown. */
  readonly signals: Readonly<Partial<Record<LoadSignal, number>>>;
  /** The sum over all its gauges; undefined if requests in flight do not count. */
  readonly limit: number | undefined;
  readonly inFlight: number;
  readonly classes: readonly SheddingClass[];
}

/** The results of one class of requests since the start. */
export interface SheddingClass {
  readonly name: string;
  /** The utilisation at which it is shed. */
  readonly threshold: number;
  readonly passed: number;
  readonly shed: number;
}

/** Shed requests should come back after 1 s plus a random part of this spread, which is longer the fewer pass. */
const LEAST_RETRY_MS = 1_000;
const RETRY_SPREAD_MS = { least: 2_000, most: 10_000 } as const;

export class LoadShedder {
  readonly reports = new UtilisationReports();
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #newId: () => string;
  readonly #gauges: Gauges;
  readonly #places = new Places();
  #eventLoop: EventLoop | undefined;

  constructor({ now, random = Math.random, newId, lateness }: LoadShedderOptions) {
    this.#gauges = new Gauges(lateness);
    this.#now = now;
    this.#random = random;
    this.#newId = newId;
  }

  /** Undefined if no load-shedding rule applies. Several attribute sets of one request count as one request in flight. */
  admit(parts: readonly (readonly [SheddingBook, Attributes])[], asked: AdmissionRequest): Admission | undefined {
    const results: CheckResult[] = [];
    const slots: GaugeSlot[] = [];
    const seen: GaugeSlot[] = [];
    const nowMs = this.#now();
    let refused = false;
    this.#places.freeLeft(nowMs);
    for (const [book, attributes] of parts) {
      for (const match of book.find(attributes)) {
        const slot = this.#gauges.slotOf(match.plan, match.gauge, nowMs, match.values);
        if (seen.includes(slot)) continue;
        seen.push(slot);
        const result = this.#judge(slot, match, { attributes, looks: asked.looks, nowMs });
        results.push(result);
        if (!result.allowed && result.mode === "enforce") refused = true;
        if (match.plan.limit !== undefined) slots.push(slot);
      }
    }
    if (results.length === 0) return undefined;
    const takes = !refused && asked.holds && !asked.looks && slots.length > 0;
    return { results, refused, place: takes ? this.#take(slots, nowMs) : undefined };
  }

  /** The request has ended. False if its place was no longer held. */
  release(place: string, end: RequestEnd = "served"): boolean {
    return this.#places.release(place, this.#now(), end);
  }

  /** The request waits for its turn, and does no work until `resume`. */
  pause(place: string): void {
    this.#places.pause(place, this.#now());
  }

  resume(place: string): void {
    this.#places.resume(place, this.#now());
  }

  /** Milliseconds until the place ends now; 0 if it was lost. */
  renew(place: string): number {
    return this.#places.renew(place, this.#now());
  }

  report(report: { value: number; source: string; key: string; ttlMs: number }): void {
    this.reports.add(report, this.#now());
  }

  /** By rule, for metrics. */
  stats(): SheddingStats[] {
    const nowMs = this.#now();
    this.#places.freeExpired(nowMs);
    this.#places.freeLeft(nowMs);
    const byRule = new Map<string, SheddingStats>();
    for (const slot of this.#gauges.all()) {
      const { gauge, plan, passed, shed } = slot;
      const other = byRule.get(plan.rule);
      const limit = gauge.settledLimit;
      byRule.set(plan.rule, {
        rule: plan.rule,
        utilisation: Math.max(gauge.utilisation, other?.utilisation ?? 0),
        signals: highestOf(this.#signalsOf(slot, nowMs), other?.signals),
        limit: limit === undefined ? undefined : limit + (other?.limit ?? 0),
        inFlight: gauge.inFlight + (other?.inFlight ?? 0),
        classes: plan.classNames.map((name, i) => ({
          name,
          threshold: plan.thresholds[i]!,
          passed: passed[i]! + (other?.classes[i]?.passed ?? 0),
          shed: shed[i]! + (other?.classes[i]?.shed ?? 0),
        })),
      });
    }
    return [...byRule.values()];
  }

  /** Current values: a gauge itself is measured when a request arrives. */
  #signalsOf({ gauge, plan: { signals }, values }: GaugeSlot, nowMs: number): SheddingStats["signals"] {
    const { settledLimit, inFlight } = gauge;
    const reported = signals.has("reported") ? this.reports.highest(values, nowMs) : undefined;
    const loop = signals.has("event-loop") ? this.#eventLoop?.utilisation() : undefined;
    return {
      ...(settledLimit !== undefined && { inflight: inFlight / settledLimit }),
      ...(loop !== undefined && { "event-loop": loop }),
      ...(reported !== undefined && { reported }),
    };
  }

  #take(slots: readonly GaugeSlot[], nowMs: number): string {
    const id = this.#newId();
    this.#places.take(id, slots, nowMs);
    return id;
  }

  #judge(
    slot: GaugeSlot,
    match: SheddingMatch,
    request: { attributes: Attributes; looks: boolean; nowMs: number },
  ): CheckResult {
    const { gauge } = slot;
    const { plan, classIndex, fairKey } = match;
    const { attributes, looks, nowMs } = request;
    if (gauge.isDue(nowMs)) {
      this.#places.freeExpired(nowMs);
      gauge.measure(nowMs, this.#measured(match, nowMs));
    }
    const allowed = gauge.passes(
      classIndex,
      new RequestArrival({ attributes, fairKey, chance: this.#random(), looks }),
    );
    if (!looks) (allowed ? slot.passed : slot.shed)[classIndex]!++;
    return { rule: plan.rule, mode: plan.mode, ...this.#numbers(slot, classIndex, allowed) };
  }

  #numbers({ gauge, plan }: GaugeSlot, classIndex: number, allowed: boolean) {
    const { settledLimit } = gauge;
    // Without places, the numbers are percentages of utilisation.
    const limit = settledLimit === undefined ? 100 : Math.max(1, Math.round(settledLimit));
    const left = gauge.roomOf(classIndex) ?? 100 * (plan.thresholds[classIndex]! - (gauge.measured ?? 0));
    if (allowed) {
      const remaining = Math.max(0, Math.min(limit, Math.floor(left)));
      return { allowed, limit, remaining, retryAfterMs: 0, resetAfterMs: 0 };
    }
    const { least, most } = RETRY_SPREAD_MS;
    const spreadMs = most - (most - least) * gauge.shareOf(classIndex);
    const retryAfterMs = Math.ceil(LEAST_RETRY_MS + this.#random() * spreadMs);
    return { allowed, limit, remaining: 0, retryAfterMs, resetAfterMs: retryAfterMs, reason: "load" as const };
  }

  /** The highest utilisation that is measured rather than counted; undefined if no signal has a value. */
  #measured({ plan: { signals }, values }: SheddingMatch, nowMs: number): number | undefined {
    const reported = signals.has("reported") ? this.reports.highest(values, nowMs) : undefined;
    if (!signals.has("event-loop")) return reported;
    this.#eventLoop ??= new EventLoop();
    return Math.max(this.#eventLoop.utilisation(), reported ?? 0);
  }
}

function highestOf(one: SheddingStats["signals"], other: SheddingStats["signals"] = {}): SheddingStats["signals"] {
  const highest: Partial<Record<LoadSignal, number>> = { ...other };
  for (const [signal, value] of Object.entries(one) as [LoadSignal, number][]) {
    highest[signal] = Math.max(value, highest[signal] ?? 0);
  }
  return highest;
}
