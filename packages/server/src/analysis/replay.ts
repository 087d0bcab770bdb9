/**
 * Rules replayed over requests in virtual time: the shipped limiter with its store in memory, which decides as the Lua scripts do
 * (`test/twins`), on a clock that each request sets. Places of concurrency rules are given back when their request ended in the log.
 */
import { type Attributes, createLimiter, type Decision, type Limiter, memoryStore, type Rule } from "sluice";
import { EventQueue } from "./event-queue.js";

/** A request as rules see it. */
export interface Arrival {
  readonly atMs: number;
  readonly durationMs: number | undefined;
  readonly attributes: Attributes;
  readonly cost?: number | undefined;
}

/** `keys`: the counters that were asked, in the order of the decision's checks. */
export interface Replayed {
  readonly decision: Decision;
  readonly keys: readonly string[];
}

/** Counters of a day's log fit; beyond, idle ones give way, which the report says. */
const MOST_BYTES = 2 ** 30;

export class Replay {
  readonly #limiter: Limiter;
  readonly #ends = new EventQueue<string>();
  #nowMs = 0;
  #keys: readonly string[] = [];

  constructor(rules: readonly Rule[]) {
    const clock = { now: () => this.#nowMs };
    this.#limiter = createLimiter({ rules, store: memoryStore({ clock, maxBytes: MOST_BYTES, onMemoryLimit: () => {} }) });
    this.#limiter.on("decision", (_, { checks }) => {
      this.#keys = checks.map(({ key }) => key);
    });
  }

  get rules(): readonly Rule[] {
    return this.#limiter.rules;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** How many counters gave way that were not used up, and that were. */
  get evicted(): number {
    const { idle, usedUp } = this.#limiter.memoryUse()!.evicted;
    return idle + usedUp;
  }

  /** A request that arrives before the last one is decided at the time of that one. */
  async decide({ atMs, durationMs, attributes, cost }: Arrival): Promise<Replayed> {
    await this.#advance(Math.max(this.#nowMs, atMs));
    this.#keys = [];
    const made = this.#limiter.checkNow(attributes, cost === undefined ? undefined : { cost });
    const decision = made instanceof Promise ? await made : made;
    if (decision.lease !== undefined) this.#ends.add(this.#nowMs + (durationMs ?? 0), decision.lease.id);
    return { decision, keys: this.#keys };
  }

  /** Gives back what ended by then, each at its own time. */
  async #advance(toMs: number): Promise<void> {
    while (this.#ends.nextMs <= toMs) {
      const { atMs, item } = this.#ends.take()!;
      this.#nowMs = Math.max(this.#nowMs, atMs);
      await this.#limiter.release(item);
    }
    this.#nowMs = toMs;
  }

  close(): Promise<void> {
    return this.#limiter.close();
  }
}
