/**
 * The gauges of the load-shedding rules in force: one per rule, or per value of its key. Bounded: values beyond the bound share one gauge
 * of their rule. A gauge survives a change of other rules; when its own rule's numbers change, only the requests in flight carry over.
 */
import type { SheddingPlan } from "../rules/shedding-plan.js";
import { Gauge } from "./gauge.js";

/** Holds a gauge; requests in flight keep a reference to the slot. */
export interface GaugeSlot {
  gauge: Gauge;
  plan: SheddingPlan;
  /** The key's values, by which reports address the gauge; "" for a shared gauge. */
  readonly values: string;
  usedAtMs: number;
  /** By class, since the start. */
  passed: number[];
  shed: number[];
}

const MOST_GAUGES = 1_000;
const IDLE_AFTER_MS = 60_000;
/** Not an encoded key: the key of a rule with one is never empty. */
const OTHER_VALUES = "*";

export class Gauges {
  readonly #lateness: (() => number) | undefined;
  /** By rule, then by key values. */
  readonly #slots = new Map<string, Map<string, GaugeSlot>>();
  #count = 0;

  /** `lateness`: the integral over time of how late this process is (`loop-lateness.ts`). */
  constructor(lateness?: () => number) {
    this.#lateness = lateness;
  }

  slotOf(plan: SheddingPlan, key: string, nowMs: number, values = ""): GaugeSlot {
    const ofRule = this.#slots.get(plan.rule) ?? new Map<string, GaugeSlot>();
    let slot = ofRule.get(key);
    if (slot === undefined) {
      if (this.#count >= MOST_GAUGES) this.#forgetIdle(nowMs);
      const isOwn = this.#count < MOST_GAUGES;
      const place = isOwn ? key : OTHER_VALUES;
      slot = ofRule.get(place);
      if (slot === undefined) {
        slot = this.#fresh(plan, nowMs, isOwn ? values : "");
        ofRule.set(place, slot);
        this.#slots.set(plan.rule, ofRule);
        this.#count++;
      }
    }
    if (slot.plan !== plan) this.#adopt(slot, plan);
    slot.usedAtMs = nowMs;
    return slot;
  }

  *all(): Generator<GaugeSlot> {
    for (const ofRule of this.#slots.values()) yield* ofRule.values();
  }

  #forgetIdle(nowMs: number): void {
    for (const [rule, ofRule] of this.#slots) {
      for (const [key, { gauge, usedAtMs }] of ofRule) {
        if (gauge.inFlight > 0 || nowMs - usedAtMs < IDLE_AFTER_MS) continue;
        ofRule.delete(key);
        this.#count--;
      }
      if (ofRule.size === 0) this.#slots.delete(rule);
    }
  }

  #fresh(plan: SheddingPlan, nowMs: number, values: string): GaugeSlot {
    const zeros = plan.classNames.map(() => 0);
    return { gauge: this.#gauge(plan), plan, values, usedAtMs: nowMs, passed: [...zeros], shed: [...zeros] };
  }

  #adopt(slot: GaugeSlot, plan: SheddingPlan): void {
    if (slot.plan.signature !== plan.signature) {
      slot.gauge = this.#gauge(plan, slot.gauge);
      slot.passed = plan.classNames.map(() => 0);
      slot.shed = plan.classNames.map(() => 0);
    }
    slot.plan = plan;
  }

  #gauge({ limit, thresholds, isFair }: SheddingPlan, before?: Gauge): Gauge {
    return new Gauge({ limit, thresholds, isFair, lateness: this.#lateness }, before);
  }
}
