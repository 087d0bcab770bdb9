/**
 * The instances of a world: each a limiter of the shipped library on clocks and timers of its own. An instance that crashes takes its
 * memory and its timers along; its next start is another actor.
 */
import { createLimiter, type Limiter } from "../../packages/sluice/src/limiter/limiter.js";
import type { Rule } from "../../packages/sluice/src/rules/rule.js";
import type { Network } from "./network.js";
import type { Plan } from "./plan.js";
import { mixSeed, Random } from "./random.js";
import { RemoteStore } from "./remote-store.js";
import { Actor, ActorClock, type Simulation } from "./simulation.js";
import type { StoreServer } from "./store-server.js";

export interface Instance {
  readonly index: number;
  readonly actor: Actor;
  readonly limiter: Limiter;
  readonly startedAtMs: number;
  /** Open for new requests. */
  open: boolean;
}

interface FleetOptions {
  readonly simulation: Simulation;
  readonly network: Network;
  readonly server: StoreServer;
  readonly plan: Plan;
  /** Sees every start, before the first request. */
  readonly onStart: (instance: Instance) => void;
}

export class Fleet {
  readonly #options: FleetOptions;
  readonly #running = new Map<number, Instance>();
  readonly #clocks = new Map<number, ActorClock>();
  /** Every incarnation, for the search for what is left at the end. */
  readonly all: Instance[] = [];
  #rules: readonly Rule[];

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#rules = options.plan.rules;
  }

  /** Undefined while it is down. */
  find(index: number): Instance | undefined {
    const instance = this.#running.get(index);
    return instance?.open ? instance : undefined;
  }

  get running(): readonly Instance[] {
    return [...this.#running.values()];
  }

  start(index: number): void {
    if (this.#running.has(index)) return;
    const { simulation, network, server, plan, onStart } = this.#options;
    const name = `i${index}.${this.all.filter((other) => other.index === index).length}`;
    const actor = new Actor(name, this.#clockOf(index));
    simulation.at(simulation.nowMs, actor, () => {
      const { deadlineMs, rememberRefusals = false } = plan;
      const store = new RemoteStore({ simulation, network, server, actor, deadlineMs, rememberRefusals });
      const { countedInstances: instances } = plan;
      const limiter = createLimiter({ store, rules: this.#rules, ...(instances === undefined ? {} : { instances }) });
      const instance: Instance = { index, actor, limiter, startedAtMs: simulation.nowMs, open: true };
      this.#running.set(index, instance);
      this.all.push(instance);
      if (simulation.log) simulation.say("starts");
      onStart(instance);
    });
  }

  crash(index: number): void {
    const instance = this.#running.get(index);
    if (instance === undefined) return;
    this.#options.simulation.say(`${instance.actor.name} crashes`);
    instance.actor.alive = false;
    instance.actor.timers.clear();
    instance.open = false;
    this.#running.delete(index);
  }

  /** A graceful shutdown. */
  close(index: number): void {
    const instance = this.#running.get(index);
    if (instance === undefined) return;
    const { simulation } = this.#options;
    instance.open = false;
    simulation.at(simulation.nowMs, instance.actor, () => {
      if (simulation.log) simulation.say("closes");
      void instance.limiter.close().then(() => this.#running.delete(index));
    });
  }

  /** A change of rules reaches the instances one by one; those that start later have the newest. */
  setRules(index: number, rules: readonly Rule[]): void {
    this.#rules = rules;
    const instance = this.find(index);
    if (instance === undefined) return;
    const { simulation } = this.#options;
    simulation.at(simulation.nowMs, instance.actor, () => {
      if (simulation.log) simulation.say("has new rules");
      instance.limiter.setRules(rules);
    });
  }

  clockOf(index: number): ActorClock {
    return this.#clockOf(index);
  }

  /** The clock is the machine's: a restart keeps it. */
  #clockOf(index: number): ActorClock {
    let clock = this.#clocks.get(index);
    if (clock === undefined) {
      const { simulation, plan } = this.#options;
      const random = new Random(mixSeed(simulation.seed, index, 3));
      clock = new ActorClock(simulation, {
        driftPpm: random.between(-plan.driftPpm, plan.driftPpm),
        wallOffsetMs: random.whole(-5_000, 5_000),
      });
      this.#clocks.set(index, clock);
    }
    return clock;
  }
}
