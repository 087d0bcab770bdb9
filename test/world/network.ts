/**
 * Messages between instances and a store. Each has a fate: how long it takes, whether it is lost or delivered twice. Delays differ, so
 * messages overtake each other. An actor that is cut off sends and receives nothing.
 */
import type { Actor, Simulation } from "./simulation.js";

export interface NetworkFaults {
  readonly delayMs: readonly [least: number, most: number];
  /** Of each message, request or reply. */
  readonly loss: number;
  /** Only of messages that may be sent again. */
  readonly doubling: number;
  /** Of messages that take up to a second, past every deadline. */
  readonly stragglers: number;
}

interface Message {
  readonly from: Actor;
  readonly to: Actor;
  readonly name: string;
  readonly mayDouble: boolean;
  readonly deliver: () => void;
}

const STRAGGLER_MS = 1_000;

export class Network {
  faults: NetworkFaults;
  readonly #simulation: Simulation;
  readonly #cutOff = new Set<Actor>();
  sent = 0;
  lost = 0;
  doubled = 0;

  constructor(simulation: Simulation, faults: NetworkFaults) {
    this.#simulation = simulation;
    this.faults = faults;
  }

  cutOff(actor: Actor): void {
    this.#cutOff.add(actor);
  }

  heal(actor: Actor): void {
    this.#cutOff.delete(actor);
  }

  isCutOff(actor: Actor): boolean {
    return this.#cutOff.has(actor);
  }

  send(message: Message): void {
    const fate = this.#simulation.fate();
    this.sent++;
    this.#deliver(message, fate.chance(this.faults.loss), this.#delayMs(fate));
    if (message.mayDouble && fate.chance(this.faults.doubling)) {
      this.doubled++;
      this.#deliver({ ...message, name: `${message.name} again` }, false, this.#delayMs(fate));
    }
  }

  #delayMs(fate: { next(): number; between(least: number, most: number): number }): number {
    const [least, most] = this.faults.delayMs;
    const slow = fate.next() < this.faults.stragglers;
    return slow ? fate.between(most, STRAGGLER_MS) : fate.between(least, most);
  }

  #deliver({ from, to, name, deliver }: Message, isLost: boolean, delayMs: number): void {
    const simulation = this.#simulation;
    if (isLost || this.#cutOff.has(from)) {
      this.lost++;
      if (simulation.log) simulation.say(`${name} to ${to.name}: lost`);
      return;
    }
    if (simulation.log) simulation.say(`${name} to ${to.name}: takes ${delayMs.toFixed(1)} ms`);
    simulation.at(simulation.nowMs + delayMs, to, () => {
      if (this.#cutOff.has(to)) this.lost++;
      else deliver();
    });
  }
}
