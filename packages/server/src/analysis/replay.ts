/**
 * Rules replayed over requests in virtual time: the shipped limiter with its store in memory, which decides as the Lua scripts do
 * (`test/twins`), on a clock that each request sets. Places of concurrency rules are given back when their request ended in the log.
 */
import {
  type Attributes,
  createLimiter,
  type DecidedRequest,
  type Decision,
  type Limiter,
  memoryStore,
  type Rule,
} from "sluice";
import { isCounting } from "sluice/internal";
import { EventQueue } from "./event-queue.js";

/** A request as rules see it. */
export interface Arrival {
  readonly atMs: number;
  readonly durationMs: number | undefined;
  readonly attributes: Attributes;
  readonly cost?: number | undefined;
}

/** A decision, and what it asked: `asked[i]` stands behind the decision's check `i`. */
export interface Replayed {
  readonly decision: Decision;
  readonly asked: DecidedRequest["checks"];
}

/** Counters of a day's log fit; beyond, idle ones give way, which the report says. */
const MOST_BYTES = 2 ** 30;

export class Replay {
  readonly #limiter: Limiter;
  readonly #ends = new EventQueue<string>();
  #nowMs = 0;
  #asked: DecidedRequest["checks"] = [];

  constructor(rules: readonly Rule[]) {
    const clock = { now: () => this.#nowMs };
    this.#limiter = createLimiter({
      // How busy a server was then is not in its log: load-shedding rules are left out.
      rules: rules.filter(isCounting),
      store: memoryStore({ clock, maxBytes: MOST_BYTES, onMemoryLimit: () => {} }),
    });
    this.#limiter.on("decision", (_, { checks }) => {
      this.#asked = checks;
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
    this.#asked = [];
    const made = this.#limiter.checkNow(attributes, cost === undefined ? undefined : { cost });
    const decision = made instanceof Promise ? await made : made;
    if (decision.lease !== undefined) this.#ends.add(this.#nowMs + (durationMs ?? 0), decision.lease.id);
    return { decision, asked: this.#asked };
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
