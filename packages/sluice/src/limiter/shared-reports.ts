/**
 * Utilisation reports, shared by all instances of a store: own reports are written at once; those of others are read every second while a
 * rule in force uses them. If the store is away or not shared, each instance knows only its own reports.
 */
import { isShedding, type Rule } from "../rules/rule.js";
import type { LoadShedder } from "../shedding/load-shedder.js";
import { mostReports } from "../shedding/utilisation-reports.js";
import type { SharedReport, Store } from "../store/store.js";

const READ_EVERY_MS = 1_000;

export class SharedReports {
  readonly #store: Store;
  readonly #shedder: LoadShedder;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(store: Store, shedder: LoadShedder) {
    this.#store = store;
    this.#shedder = shedder;
  }

  /** Reads the reports of others if one of these rules uses them. */
  hearFor(rules: readonly Rule[]): void {
    const isWanted = rules.some(
      (rule) => rule.adapt !== undefined || (isShedding(rule) && [rule.signal].flat().includes("reported")),
    );
    if (!isWanted || this.#isClosed || this.#store.shareReports === undefined) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    } else if (this.#timer === undefined) {
      this.#timer = setInterval(() => void this.#exchange(), READ_EVERY_MS);
      this.#timer.unref();
      void this.#exchange();
    }
  }

  /** Takes effect here at once. Resolves to whether the other instances can see it; never rejects. An invalid report throws. */
  report(report: SharedReport): Promise<boolean> {
    this.#shedder.report(report);
    return this.#store.shareReports === undefined ? Promise.resolve(true) : this.#exchange(report);
  }

  close(): void {
    this.#isClosed = true;
    this.hearFor([]);
  }

  async #exchange(report?: SharedReport): Promise<boolean> {
    try {
      const reports = await this.#store.shareReports!(report && { report, most: mostReports(report.key) });
      for (const one of reports) this.#hear(one);
      return true;
    } catch {
      // The store is away: the report applies to this instance only.
      return false;
    }
  }

  #hear(report: SharedReport): void {
    try {
      this.#shedder.report(report);
    } catch {
      // Written by another version, or one more than a process holds: the other reports still count.
    }
  }
}
