/**
 * The clients of a world: they carry out the plan's requests. A request with an id is asked again of the next instance until the store
 * has answered; work under a lease renews it, stops when its signal aborts, and releases it.
 */

import type { Reservation } from "../../packages/sluice/src/decision.js";
import { SluiceError } from "../../packages/sluice/src/errors.js";
import type { Decision } from "../../packages/sluice/src/limiter/decision.js";
import type { Attributes } from "../../packages/sluice/src/rules/rule.js";
import type { Fleet, Instance } from "./fleet.js";
import type { Judge } from "./judge.js";
import type { CheckStep, Work } from "./plan.js";
import type { Simulation } from "./simulation.js";

interface ClientsOptions {
  readonly simulation: Simulation;
  readonly fleet: Fleet;
  readonly judge: Judge;
}

export class Clients {
  readonly #options: ClientsOptions;
  requests = 0;
  byPolicy = 0;
  #endsMs = 0;
  allowed = 0;

  constructor(options: ClientsOptions) {
    this.#options = options;
  }

  /** When the last work under a lease is over. */
  get endsMs(): number {
    return this.#endsMs;
  }

  ask(step: CheckStep, attempt = 0): void {
    const { simulation, fleet } = this.#options;
    const index = step.instances[attempt];
    if (index === undefined) return;
    const instance = fleet.find(index);
    if (instance === undefined) {
      this.ask(step, attempt + 1);
      return;
    }
    simulation.at(simulation.nowMs, instance.actor, () => void this.#ask(step, attempt, instance));
  }

  async #ask(step: CheckStep, attempt: number, instance: Instance): Promise<void> {
    const { simulation, judge } = this.#options;
    const { attributes, cost, id } = step;
    const options = { ...(cost === undefined ? {} : { cost }), ...(id === undefined ? {} : { id }) };
    const { limiter } = instance;
    if (!instance.open) return;
    if (simulation.log)
      simulation.say(`${step.charge ? "charge" : "check"} ${JSON.stringify({ ...attributes, ...options })}`);
    this.requests++;
    let decision: Decision;
    try {
      decision = await (step.charge ? limiter.charge(attributes, options) : limiter.check(attributes, options));
    } catch (error) {
      if (error instanceof SluiceError && error.code === "closed") return;
      simulation.fail(`a check threw: ${String(error)}`);
      return;
    }
    if (simulation.log) simulation.say(describeDecision(decision));
    if (decision.degraded !== undefined) this.byPolicy++;
    if (decision.allowed) this.allowed++;
    judge.clientDecided(instance, step, decision);
    if (decision.degraded !== undefined && id !== undefined && attempt + 1 < step.instances.length) {
      // Whatever was admitted by policy is not used: the client insists on the store's answer.
      this.ask(step, attempt + 1);
      return;
    }
    if (!decision.allowed && (step.returns ?? 0) > 0 && decision.reason !== "cost-exceeds-limit") {
      // At the very instant that the decision named: the first at which the same request may pass.
      const again = { ...step, returns: step.returns! - 1, atMs: simulation.nowMs + decision.retryAfterMs };
      simulation.at(simulation.nowMs + decision.retryAfterMs, undefined, () => this.ask(again));
    }
    if (decision.lease !== undefined && decision.allowed) this.#work(step, instance, decision);
    if (decision.reservation !== undefined && step.work !== undefined) this.#settle(step.work, decision.reservation);
    if (step.refundAfterMs !== undefined && decision.allowed) {
      const atMs = simulation.nowMs + step.refundAfterMs;
      simulation.at(atMs, instance.actor, () => this.#refund(step, instance, decision));
    }
  }

  #refund(step: CheckStep, instance: Instance, decision: Decision): void {
    const { simulation, fleet, judge } = this.#options;
    // By id from the last instance of the list, which need not be the one that decided.
    const other = step.id === undefined ? undefined : fleet.find(step.instances.at(-1)!);
    const byId = step.id !== undefined && other !== undefined && decision.degraded === undefined;
    const at = byId ? other : instance;
    simulation.at(simulation.nowMs, at.actor, () => {
      if (!at.open) return;
      if (simulation.log) simulation.say(`refund ${step.id ?? ""}`);
      if (!byId) {
        judge.shares?.refunded(decision);
        judge.refundsFromHand(decision);
      }
      at.limiter.refund(byId ? step.id! : decision).then(
        (done) => {
          if (simulation.log) simulation.say(`refunded: ${done}`);
        },
        (error) => {
          if (!(error instanceof SluiceError) || (error.code !== "store-unavailable" && error.code !== "closed"))
            simulation.fail(`a refund threw: ${String(error)}`);
        },
      );
    });
  }

  /** Does the work under a reservation, and tells its cost to whichever instance is there. */
  #settle(work: Work, { id, held }: Reservation): void {
    const { simulation, judge } = this.#options;
    const [name] = id.split(".") as [string];
    const { afterMs, costs, extension, again, isCancelled = false } = work;
    const tell = (waitMs: number, told: Attributes): void => {
      this.#later(waitMs, work, async ({ limiter }) => {
        if (simulation.log) simulation.say(`${isCancelled ? "cancel" : "settle"} ${name} ${JSON.stringify(told)}`);
        judge.settlements.tell(name);
        const settlement = await (isCancelled ? limiter.cancel(id) : limiter.settle(id, told));
        if (simulation.log) simulation.say(`${name}: ${JSON.stringify(settlement)}`);
        judge.fail(judge.settlements.answered(name, Object.keys(held), settlement));
      });
    };
    if (extension !== undefined) {
      this.#later(extension.afterMs, work, async ({ limiter }) => {
        if (simulation.log) simulation.say(`extend ${name} ${JSON.stringify(extension.costs)}`);
        await limiter.extend(id, extension.costs);
      });
    }
    tell(afterMs, costs);
    if (again !== undefined) tell(again.afterMs, again.costs);
  }

  #later(waitMs: number, { instances }: Work, call: (instance: Instance) => Promise<void>): void {
    const { simulation, fleet } = this.#options;
    this.#endsMs = Math.max(this.#endsMs, simulation.nowMs + waitMs);
    simulation.at(simulation.nowMs + waitMs, undefined, () => {
      const instance = instances.map((index) => fleet.find(index)).find((found) => found !== undefined);
      if (instance === undefined) return;
      simulation.at(simulation.nowMs, instance.actor, () => {
        call(instance).catch((error) => {
          // One that is over cannot be extended: the store's own answer is judged where it is made.
          const known = ["closed", "unknown-reservation"];
          if (!(error instanceof SluiceError) || !known.includes(error.code))
            simulation.fail(`a reservation threw: ${String(error)}`);
        });
      });
    });
  }

  #work({ workMs = 0 }: CheckStep, instance: Instance, decision: Decision): void {
    const { simulation, judge } = this.#options;
    const lease = decision.lease!;
    // A repeated id may find its lease ended.
    if (lease.signal.aborted) return;
    const held = judge.places.take(instance.actor, decision);
    let over = false;
    this.#endsMs = Math.max(this.#endsMs, simulation.nowMs + workMs);
    const stop = (why: string): void => {
      if (simulation.log) simulation.say(`work ends: ${why}`);
      over = true;
      judge.places.leave(held);
    };
    /** Not by a timer of the instance: at rest only the library's own are counted. */
    const later = (waitMs: number, run: () => void): void => {
      simulation.at(simulation.nowMs + waitMs, instance.actor, () => {
        if (!over) run();
      });
    };
    lease.signal.addEventListener("abort", () => stop("the lease was lost"));
    later(workMs, () => {
      stop("done");
      lease.release().catch(() => {});
    });
    const renew = (): void => {
      if (simulation.log) simulation.say("renews");
      lease.renew().catch(() => {});
      later(lease.expiresAfterMs / 3, renew);
    };
    if (workMs > lease.expiresAfterMs / 2) later(lease.expiresAfterMs / 3, renew);
  }
}

function describeDecision({ allowed, degraded, remaining, reason, guarantee }: Decision): string {
  const how = degraded === undefined ? guarantee : `by ${degraded}`;
  return `${allowed ? "allowed" : `refused (${reason})`} ${how}, ${remaining} left`;
}
