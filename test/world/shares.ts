/**
 * What instances admit by the failure policy `local`: each no more than the share that its decision states, and all together no more
 * than docs/reliability.md allows.
 */
import type { DecidedRequest } from "../../packages/sluice/src/limiter/check-request.js";
import type { Decision } from "../../packages/sluice/src/limiter/decision.js";
import type { Instance } from "./fleet.js";
import type { Simulation } from "./simulation.js";

interface Admitted {
  readonly atMs: number;
  readonly localMs: number;
  readonly units: number;
  readonly instance: Instance;
  readonly decision: Decision;
}

/** How much shorter a window may seem on another clock. */
const CLOCKS_DIFFER = 0.998;

export interface LocalRule {
  readonly rule: string;
  readonly limit: number;
  readonly windowMs: number;
}

interface SharesOptions {
  readonly simulation: Simulation;
  /** The rolling windows whose local admissions are judged. */
  readonly rules: readonly LocalRule[];
  /** The most that all instances together may admit in a window, of a rule. */
  readonly bound: (rule: LocalRule) => number;
}

export class Shares {
  readonly #options: SharesOptions;
  readonly #admitted = new Map<string, Admitted[]>();
  most = 0;

  constructor(options: SharesOptions) {
    this.#options = options;
  }

  decided(instance: Instance, decision: Decision, request: DecidedRequest): void {
    if (decision.degraded !== "local" || !decision.allowed) return;
    for (const [i, { rule, limit: share }] of decision.checks.entries()) {
      const judged = this.#options.rules.find((other) => other.rule === rule);
      const { key, cost } = request.checks[i]!;
      if (judged !== undefined && cost > 0) this.#admit(instance, judged, { share, key, units: cost, decision });
    }
  }

  /** Before the refund is done: milder by what is under way. */
  refunded(decision: Decision): void {
    this.#keep((one) => one.decision !== decision);
  }

  /** The instance's counters were reset. */
  forget(instance: Instance): void {
    this.#keep((one) => one.instance !== instance);
  }

  #keep(holds: (one: Admitted) => boolean): void {
    for (const [key, admitted] of this.#admitted) this.#admitted.set(key, admitted.filter(holds));
  }

  #admit(
    instance: Instance,
    rule: LocalRule,
    admitted: { share: number; key: string; units: number; decision: Decision },
  ): void {
    const { simulation, bound } = this.#options;
    const { share, key, units, decision } = admitted;
    const { windowMs } = rule;
    const localMs = instance.actor.clock.monotonicMs();
    const atMs = simulation.nowMs;
    const kept = (this.#admitted.get(key) ?? []).filter((one) => one.atMs > atMs - 2 * windowMs);
    kept.push({ atMs, localMs, units, instance, decision });
    this.#admitted.set(key, kept);
    // A charge is never refused: it counts, and is not judged.
    if (decision.checks.some(({ debt }) => debt !== undefined)) return;
    let own = 0;
    let all = 0;
    for (const one of kept) {
      if (one.atMs > atMs - windowMs * CLOCKS_DIFFER) all += one.units;
      if (one.instance === instance && one.localMs > localMs - windowMs + 1) own += one.units;
    }
    if (own > share) simulation.fail(`${instance.actor.name} admitted ${own} of its share of ${share} under ${key}`);
    const most = bound(rule);
    this.most = Math.max(this.most, all / most);
    if (all > most) simulation.fail(`all instances admitted ${all} locally under ${key}, of at most ${most}`);
  }
}
