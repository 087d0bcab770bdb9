/**
 * Reports of utilisation that all instances of a store share: own reports are written at once, those of others are read every second while
 * a rule in force looks at them. Without the store, or where nobody shares it, each instance knows what was reported to it.
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

  /** Reads what others report if one of these rules looks at it. */
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

  /** Holds here at once. Resolves to whether the other instances can see it; never rejects. A report that is none throws. */
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
      // The store is away: what was reported here holds here.
      return false;
    }
  }

  #hear(report: SharedReport): void {
    try {
      this.#shedder.report(report);
    } catch {
      // One that another version wrote, or one more than a process holds: the others count all the same.
    }
  }
}
