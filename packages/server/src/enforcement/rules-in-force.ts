/**
 * The limiter's rules, joined from where they come: Sluice's own (the configuration), Envoy's files, and limits that Envoy's requests bring.
 * One limiter holds them all, so that a request that meets several kinds is still decided in one step.
 */
import type { Limiter, Rule } from "sluice";

export class RulesInForce {
  readonly #limiter: Limiter;
  #own: readonly Rule[] = [];
  #version = 0;
  #envoy: readonly Rule[] = [];
  #overrides: readonly Rule[] = [];

  constructor(limiter: Limiter) {
    this.#limiter = limiter;
  }

  async setOwn(rules: readonly Rule[], version: number): Promise<void> {
    this.#own = rules;
    this.#version = version;
    await this.#swap();
  }

  async setEnvoy(rules: readonly Rule[]): Promise<void> {
    this.#envoy = rules;
    await this.#swap();
  }

  async setOverrides(rules: readonly Rule[]): Promise<void> {
    this.#overrides = rules;
    await this.#swap();
  }

  async #swap(): Promise<void> {
    const rules = [...this.#own, ...this.#envoy, ...this.#overrides];
    await this.#limiter.setRules(rules, this.#version);
  }
}
