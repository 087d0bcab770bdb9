/**
 * The store of a world: the memory store's models (the twins of the Lua scripts) behind a network, on a clock of its own.
 * In: calls by name, as they arrive. Out: replies. Observers see what was really done, whatever becomes of the reply.
 */
import type { CostWeights } from "../../packages/sluice/src/algorithms/cost-histogram.js";
import type { PoolAsk, PoolFill } from "../../packages/sluice/src/algorithms/pool.js";
import type { Check } from "../../packages/sluice/src/check.js";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import type { Amounts, ExtendReply, Reserved, SettleReply } from "../../packages/sluice/src/store/reserved.js";
import type {
  LeaseRequest,
  RefundRequest,
  Store,
  StoreReply,
  StoreRequest,
} from "../../packages/sluice/src/store/store.js";
import { Actor, ActorClock, type Simulation } from "./simulation.js";

export interface StoreObserver {
  decided(request: StoreRequest, reply: StoreReply): void;
  refunded(request: RefundRequest, done: boolean): void;
  released(lease: LeaseRequest): void;
  renewed(lease: LeaseRequest, leftMs: number): void;
  extended?(reserved: Reserved, reply: ExtendReply): void;
  settled?(reserved: Reserved, reply: SettleReply, amounts: Amounts): void;
  reset(keys: readonly string[]): void;
  wiped(): void;
}

/** The calls of a store that travel; `beat` and `leave` are the heartbeat. */
export type CallName = keyof Store | "beat" | "leave";

export class StoreServer {
  readonly actor: Actor;
  readonly #simulation: Simulation;
  readonly #observer: StoreObserver;
  #store: MemoryStore;
  readonly #lastBeatMs = new Map<string, number>();
  calls = 0;

  constructor(simulation: Simulation, observer: StoreObserver, clock: { driftPpm?: number } = {}, name = "store") {
    this.actor = new Actor(name, new ActorClock(simulation, clock));
    this.#simulation = simulation;
    this.#observer = observer;
    this.#store = this.#fresh();
  }

  #fresh(): MemoryStore {
    return new MemoryStore({ clock: { now: () => this.actor.clock.wallMs() } });
  }

  /** A restart without data. Runs as the store's actor. */
  wipe(): void {
    this.#store.close();
    this.#store = this.#fresh();
    this.#lastBeatMs.clear();
    this.#observer.wiped();
  }

  get counters(): number {
    return this.#store.size;
  }

  memory(): ReturnType<MemoryStore["memory"]> {
    return this.#store.memory();
  }

  /** What a counter holds, without a message. */
  look(check: Check): StoreReply {
    const nobody = { entryId: "", id: undefined, fingerprint: "", rulesVersion: 0 };
    return this.#store.decide({ checks: [check], charge: false, ...nobody });
  }

  /** Runs as the store's actor. What it throws is the reply. */
  answer(name: CallName, args: readonly unknown[]): unknown {
    this.calls++;
    switch (name) {
      case "decide": {
        const request = args[0] as StoreRequest;
        const reply = this.#store.decide(request);
        this.#observer.decided(request, reply);
        if (this.#simulation.log && reply.grants !== undefined) {
          this.#simulation.say(
            `grants ${JSON.stringify(reply.grants)}, left ${reply.verdicts.map(({ remaining }) => remaining)}`,
          );
        }
        return copied(reply);
      }
      case "recall": {
        const found = this.#store.recall(args[0] as string);
        return found && copied(found);
      }
      case "refund": {
        const done = this.#store.refund(args[0] as RefundRequest);
        this.#observer.refunded(args[0] as RefundRequest, done);
        return done;
      }
      case "release": {
        this.#observer.released(args[0] as LeaseRequest);
        return this.#store.release(args[0] as LeaseRequest);
      }
      case "renew": {
        const leftMs = this.#store.renew(args[0] as LeaseRequest);
        this.#observer.renewed(args[0] as LeaseRequest, leftMs);
        return leftMs;
      }
      case "settle": {
        const [reserved, amounts, settlement] = args as [Reserved, Amounts, string];
        const reply = this.#store.settle(reserved, amounts, settlement);
        this.#observer.settled?.(reserved, reply, amounts);
        return reply;
      }
      case "extend": {
        const reply = this.#store.extend(args[0] as Reserved, args[1] as Amounts);
        this.#observer.extended?.(args[0] as Reserved, reply);
        return { ...reply, verdicts: reply.verdicts.map((verdict) => ({ ...verdict })) };
      }
      case "holdState":
        return this.#store.holdState(args[0] as Reserved);
      case "learn":
        return this.#store.learn(args[0] as string, args[1] as CostWeights);
      case "reset":
        this.#store.reset(args[0] as string[]);
        this.#observer.reset(args[0] as string[]);
        return undefined;
      case "askForPool":
        return this.#store.askForPool(args[0] as string, args[1] as PoolAsk);
      case "fillPool":
        return this.#store.fillPool(args[0] as string, args[1] as PoolFill);
      case "ready":
        return true;
      case "beat":
      case "leave":
        return this.#heartbeat(name, args[0] as string, args[1] as number);
      default:
        throw new Error(`the store of the world does not know ${name}`);
    }
  }

  /** As instances.lua. */
  #heartbeat(step: "beat" | "leave", id: string, patienceMs: number): number {
    const nowMs = this.actor.clock.wallMs();
    for (const [other, atMs] of this.#lastBeatMs) {
      if (atMs <= nowMs - patienceMs || atMs >= nowMs + patienceMs) this.#lastBeatMs.delete(other);
    }
    if (step === "beat") this.#lastBeatMs.set(id, nowMs);
    else this.#lastBeatMs.delete(id);
    return this.#lastBeatMs.size;
  }
}

/** What travels is a copy: the store keeps its own for repeated ids. */
function copied(reply: StoreReply): StoreReply {
  return { ...reply, verdicts: reply.verdicts.map((verdict) => ({ ...verdict })) };
}
