/**
 * Utilisation for rules with `adapt`: what is reported, or the busiest event loop of the instances, each of which reports its own to the
 * others under a key of its own.
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

/** Of an instance that is gone, its event loop stops counting by itself. */
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
      // More instances than reports are held: this one still knows itself.
    }
    return Math.max(value, reports.highestOf(LOOP_KEY, now()) ?? 0);
  }
}
