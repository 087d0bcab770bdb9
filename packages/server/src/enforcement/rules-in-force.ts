/**
 * The limiter's rules, merged from their sources: the configuration's own, and Envoy's files.
 * A single limiter holds them all, so that a request that matches several kinds is still decided in one step.
 */
import { type Limiter, parseRulesInSlices, type Rule } from "sluice";
import { swapValidatedRules } from "sluice/internal";

interface Sources {
  readonly own: readonly Rule[];
  readonly version: number;
  readonly envoy: readonly Rule[];
}

export class RulesInForce {
  readonly #limiter: Limiter;
  #sources: Sources = { own: [], version: 0, envoy: [] };
  #lastSwap: Promise<void> = Promise.resolve();

  constructor(limiter: Limiter) {
    this.#limiter = limiter;
  }

  /** `own`: validated rules from the configuration. */
  async setOwn(own: readonly Rule[], version: number): Promise<void> {
    await this.#swap({ own, version });
  }

  async setEnvoy(envoy: readonly Rule[]): Promise<void> {
    await this.#swap({ envoy: await parseRulesInSlices(envoy) });
  }

  /**
   * If the limiter refuses the rules, nothing changes: a bad source must not block the others. So swaps are serialised, and each starts
   * from the result of the one before.
   */
  #swap(changed: Partial<Sources>): Promise<void> {
    const mine = this.#lastSwap.then(async () => {
      const next = { ...this.#sources, ...changed };
      await swapValidatedRules(this.#limiter, [...next.own, ...next.envoy], next.version);
      this.#sources = next;
    });
    this.#lastSwap = mine.catch(() => undefined);
    return mine;
  }
}
