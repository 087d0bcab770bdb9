/**
 * Utilisation for rules with `adapt`: either what was reported, or the busiest event loop among the instances. Each instance reports its
 * own event loop to the others under a reserved key.
 */
import type { AdaptSignal } from "../rules/rule.js";
import { EventLoop } from "../shedding/event-loop.js";
import { LOOP_KEY, type UtilisationReports } from "../shedding/utilisation-reports.js";
import type { SharedReports } from "./shared-reports.js";

interface AdaptSignalsOptions {
  readonly reports: UtilisationReports;
  readonly shared: SharedReports;
  readonly instance: string;
  readonly now: () => number;
}

/** The event loop of an instance that is gone stops counting after this. */
const LOOP_TTL_MS = 5_000;

export class AdaptSignals {
  readonly #options: AdaptSignalsOptions;
  readonly #loop = new EventLoop();

  constructor(options: AdaptSignalsOptions) {
    this.#options = options;
  }

  utilisationOf(signal: AdaptSignal): number | undefined {
    const { reports, shared, instance, now } = this.#options;
    if (signal === "reported") return reports.highest("", now());
    const value = this.#loop.utilisation();
    try {
      void shared.report({ value, source: instance, key: LOOP_KEY, ttlMs: LOOP_TTL_MS });
    } catch {
      // There are more instances than the store holds reports: this one still knows its own value.
    }
    return Math.max(value, reports.highestOf(LOOP_KEY, now()) ?? 0);
  }
}
