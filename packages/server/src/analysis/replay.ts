/**
 * Replays rules over requests in virtual time: the real limiter with the memory store, which decides as the Lua scripts do (`test/twins`),
 * on a clock set by each request. Concurrency places are released when their request ended in the log.
 */
import {
  type Attributes,
  createLimiter,
  type DecidedRequest,
  type Decision,
  type Limiter,
  memoryStore,
  type Rule,
  SluiceError,
} from "sluice";
import { isCounting } from "sluice/internal";
import type { DecisionLine, TimedLine } from "../recording/recording-lines.js";
import { EventQueue } from "./event-queue.js";
import { LastNamed } from "./last-named.js";

/** A request as seen by rules. */
export interface Arrival {
  readonly atMs: number;
  readonly durationMs: number | undefined;
  readonly attributes: Attributes;
  readonly cost?: number | undefined;
  /** Name of a recorded decision: its lease ends when the recording says so. */
  readonly entry?: string | undefined;
  /** A charge: counted in full, never refused. */
  readonly isCharge?: boolean | undefined;
}

/** A decision, and its checks' keys and costs: `asked[i]` belongs to the decision's check `i`. */
export interface Replayed {
  readonly decision: Decision;
  readonly asked: DecidedRequest["checks"];
}

/** Enough for the counters of a day's log; beyond, idle ones are evicted, which the report mentions. */
export const MOST_BYTES = 2 ** 30;
const LEAST_NAMED = 50_000;

export class Replay {
  readonly #limiter: Limiter;
  readonly #ends = new EventQueue<string>();
  /** Recorded decisions that may still be refunded or released. */
  readonly #named = new LastNamed<Decision>(LEAST_NAMED);
  #nowMs = 0;
  #asked: DecidedRequest["checks"] = [];

  constructor(rules: readonly Rule[], maxBytes = MOST_BYTES) {
    const clock = { now: () => this.#nowMs };
    this.#limiter = createLimiter({
      // Load-shedding rules are left out: a log does not contain the server's utilisation.
      rules: rules.filter(isCounting),
      store: memoryStore({ clock, maxBytes, onMemoryLimit: () => {} }),
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

  /** Number of evicted counters, used up or not. */
  get evicted(): number {
    const { idle, usedUp } = this.#limiter.memoryUse()!.evicted;
    return idle + usedUp;
  }

  /** A request that arrives before the previous one is decided at that one's time. Synchronous, unless leases end first. */
  decide(arrival: Arrival): Replayed | Promise<Replayed> {
    const toMs = Math.max(this.#nowMs, arrival.atMs);
    if (this.#ends.nextMs <= toMs) return this.#advance(toMs).then(() => this.#decideNow(arrival));
    this.#nowMs = toMs;
    return this.#decideNow(arrival);
  }

  #decideNow(arrival: Arrival): Replayed | Promise<Replayed> {
    const { attributes, cost, isCharge } = arrival;
    this.#asked = [];
    const options = cost === undefined ? undefined : { cost };
    const made =
      isCharge === true ? this.#limiter.charge(attributes, options) : this.#limiter.checkNow(attributes, options);
    return made instanceof Promise ? made.then((decision) => this.#made(decision, arrival)) : this.#made(made, arrival);
  }

  #made(decision: Decision, { entry, durationMs }: Arrival): Replayed {
    if (entry !== undefined) this.#named.set(entry, decision);
    else if (decision.lease !== undefined) this.#ends.add(this.#nowMs + (durationMs ?? 0), decision.lease.id);
    return { decision, asked: this.#asked };
  }

  /** Applies later events on recorded decisions: refunds, releases, renewals, resets; those of unknown rules are skipped. */
  async happened(line: Exclude<TimedLine, DecisionLine>): Promise<void> {
    await this.#advance(Math.max(this.#nowMs, line.at));
    const limiter = this.#limiter;
    if ("refund" in line) {
      const decision = this.#named.get(line.refund);
      if (decision !== undefined) await limiter.refund(decision);
    } else if ("giveBack" in line) {
      const own = line.giveBack.filter(({ book }) => book === undefined);
      await limiter.giveBackAll(own.map(({ attributes, cost }) => ({ attributes, cost }))).catch(isMalformed);
    } else if ("reset" in line) await limiter.reset(line.reset, line.attributes).catch(isMalformed);
    else if ("block" in line) await limiter.block(line.block, line.attributes, line.lengthMs).catch(isMalformed);
    else {
      for (const name of line.release ?? line.renew ?? []) {
        const lease = this.#named.get(name)?.lease;
        if (lease !== undefined)
          await (line.release === undefined ? limiter.renew(lease.id) : limiter.release(lease.id));
      }
    }
  }

  /** Releases the leases that ended by then, each at its own time. */
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

/** Ignores an event that refers to a rule or a cost that these rules do not have. */
function isMalformed(error: unknown): void {
  if (!(error instanceof SluiceError)) throw error;
}
