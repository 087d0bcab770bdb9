/**
 * The limiter's rules, joined from where they come: Sluice's own (the configuration) and Envoy's files.
 * One limiter holds them all, so that a request that meets several kinds is still decided in one step.
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

  /** `own`: validated rules, as the configuration holds them. */
  async setOwn(own: readonly Rule[], version: number): Promise<void> {
    await this.#swap({ own, version });
  }

  async setEnvoy(envoy: readonly Rule[]): Promise<void> {
    await this.#swap({ envoy: await parseRulesInSlices(envoy) });
  }

  /**
   * Rules that the limiter refuses leave everything as it was: a bad source must not stand in the way of the others. So each swap
   * waits for the one before it, to begin with what that left.
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
