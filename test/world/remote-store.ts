/**
 * A store as one instance sees it: every call is a message, and its answer another. A call without an answer by its deadline rejects
 * with `store-unavailable`, as the Redis store's does; an answer after that is dropped.
 */
import type { CostWeights } from "../../packages/sluice/src/algorithms/cost-histogram.js";
import type { PoolAsk, PoolAsked, PoolFill, PoolFilled } from "../../packages/sluice/src/algorithms/pool.js";
import type { Check } from "../../packages/sluice/src/check.js";
import { SluiceError } from "../../packages/sluice/src/errors.js";
import { InstanceCount, type OnBeat } from "../../packages/sluice/src/store/instance-count.js";
import { unavailable } from "../../packages/sluice/src/store/redis/failure.js";
import { RefusalMemory } from "../../packages/sluice/src/store/redis/refusal-memory.js";
import type {
  Amounts,
  ExtendReply,
  ReservationState,
  Reserved,
  SettleReply,
} from "../../packages/sluice/src/store/reserved.js";
import type {
  LeaseRequest,
  MaybePromise,
  RefundRequest,
  Store,
  StoreReply,
  StoreRequest,
} from "../../packages/sluice/src/store/store.js";
import type { Network } from "./network.js";
import type { Actor, Simulation } from "./simulation.js";
import type { CallName, StoreServer } from "./store-server.js";

interface RemoteStoreOptions {
  readonly simulation: Simulation;
  readonly network: Network;
  readonly server: StoreServer;
  readonly actor: Actor;
  readonly deadlineMs: number;
  /** As the Redis store does by default, with its own code. */
  readonly rememberRefusals: boolean;
}

interface Call {
  readonly name: CallName;
  readonly args: readonly unknown[];
  /** A network or a client that repeats a call does no harm: it has an id, or its effect is the same twice. */
  readonly mayDouble: boolean;
}

export class RemoteStore implements Store {
  readonly isRemote = true;
  readonly #options: RemoteStoreOptions;
  readonly #refusals: RefusalMemory | undefined;

  constructor(options: RemoteStoreOptions) {
    this.#options = options;
    this.#refusals = options.rememberRefusals ? new RefusalMemory(() => Number.NEGATIVE_INFINITY) : undefined;
  }

  decide(request: StoreRequest): MaybePromise<StoreReply> {
    const refusals = this.#refusals;
    if (refusals === undefined) return this.#decide(request);
    const sentMonotonicMs = performance.now();
    const refused = refusals.recall(request, sentMonotonicMs);
    if (refused !== undefined) return refused;
    return this.#decide(request).then((reply) => {
      refusals.remember(request, reply, { sentMonotonicMs, answeredMonotonicMs: performance.now() });
      return reply;
    });
  }

  #forget(keys: readonly string[]): void {
    this.#refusals?.forget(keys, performance.now());
  }

  #decide(request: StoreRequest): Promise<StoreReply> {
    // The limiter's own fields (attributes, options) do not travel.
    const { checks, charge, entryId, id, fingerprint, rulesVersion, fetches, holdMs } = request;
    const sent: StoreRequest = { checks, charge, entryId, id, fingerprint, rulesVersion, fetches, holdMs };
    // A request beside which a fetch rides may be charged twice, which costs quota; its units are granted once.
    return this.#call({ name: "decide", args: [sent], mayDouble: id !== undefined || fetches !== undefined });
  }

  recall(id: string): Promise<StoreReply | undefined> {
    return this.#call({ name: "recall", args: [id], mayDouble: true });
  }

  refund(request: RefundRequest): Promise<boolean> {
    return this.#call<boolean>({ name: "refund", args: [request], mayDouble: request.id !== undefined }).then(
      (done) => {
        this.#forget(request.charges.map(({ check }) => check.key));
        return done;
      },
    );
  }

  giveBack(checks: readonly Check[]): Promise<boolean> {
    return this.#call({ name: "giveBack", args: [checks], mayDouble: false });
  }

  release(lease: LeaseRequest): Promise<boolean> {
    return this.#call({ name: "release", args: [lease], mayDouble: true });
  }

  renew(lease: LeaseRequest): Promise<number> {
    return this.#call({ name: "renew", args: [lease], mayDouble: true });
  }

  settle(reserved: Reserved, amounts: Amounts, name = ""): Promise<SettleReply> {
    return this.#call<SettleReply>({ name: "settle", args: [reserved, amounts, name], mayDouble: true }).then(
      (reply) => {
        this.#forget(reserved.counters.map(({ key }) => key));
        return reply;
      },
    );
  }

  extend(reserved: Reserved, amounts: Amounts): Promise<ExtendReply> {
    return this.#call({ name: "extend", args: [reserved, amounts], mayDouble: true });
  }

  holdState(reserved: Reserved): Promise<ReservationState> {
    return this.#call({ name: "holdState", args: [reserved], mayDouble: true });
  }

  learn(name: string, costs: CostWeights): Promise<CostWeights> {
    return this.#call({ name: "learn", args: [name, costs], mayDouble: true });
  }

  block(key: string, lengthMs: number): Promise<void> {
    return this.#call({ name: "block", args: [key, lengthMs], mayDouble: true });
  }

  inspect(checks: readonly Check[]): Promise<Record<string, number>[]> {
    return this.#call({ name: "inspect", args: [checks], mayDouble: true });
  }

  async reset(keys: readonly string[]): Promise<void> {
    this.#forget(keys);
    await this.#call({ name: "reset", args: [keys], mayDouble: false });
    this.#forget(keys);
  }

  askForPool(key: string, ask: PoolAsk): Promise<PoolAsked> {
    // Not doubled: the second would find a fetch under way. Lost, it is one that nobody sends.
    return this.#call({ name: "askForPool", args: [key, ask], mayDouble: false });
  }

  fillPool(key: string, fill: PoolFill): Promise<PoolFilled> {
    return this.#call({ name: "fillPool", args: [key, fill], mayDouble: true });
  }

  countInstances(region?: string, onBeat?: OnBeat): InstanceCount {
    const id = region ?? this.#options.actor.name;
    return new InstanceCount(
      (step, patienceMs) => this.#call({ name: step, args: [id, patienceMs], mayDouble: step === "beat" }),
      onBeat,
    );
  }

  ready(): Promise<boolean> {
    return this.#call<boolean>({ name: "ready", args: [], mayDouble: true }).catch(() => false);
  }

  close(): void {}

  #call<T>({ name, args, mayDouble }: Call): Promise<T> {
    const { simulation, network, server, actor, deadlineMs } = this.#options;
    return new Promise<T>((resolve, reject) => {
      const deadline = setTimeout(
        () => reject(unavailable(`no answer within ${deadlineMs} ms`, undefined, true)),
        deadlineMs,
      );
      const receive = (answer: () => void): void => {
        clearTimeout(deadline);
        answer();
      };
      const serve = (): void => {
        if (simulation.log) simulation.say(`hears ${name} of ${actor.name}${describeFetches(args[0])}`);
        const answer = answerOf<T>(() => server.answer(name, args) as T, resolve, reject);
        network.send({
          from: server.actor,
          to: actor,
          name: `reply to ${name}`,
          mayDouble: true,
          deliver: () => receive(answer),
        });
      };
      if (simulation.log) simulation.say(`asks ${name}${describeFetches(args[0])}`);
      network.send({ from: actor, to: server.actor, name, mayDouble, deliver: serve });
    });
  }
}

/** Serves now; the reply settles the promise of the caller when it arrives. */
function answerOf<T>(serve: () => T, resolve: (value: T) => void, reject: (error: unknown) => void): () => void {
  try {
    const value = serve();
    return () => resolve(value);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return () => reject(error);
  }
}

function describeFetches(request: unknown): string {
  const { fetches, checks } = (request ?? {}) as Partial<StoreRequest>;
  if (fetches === undefined) return "";
  return fetches
    .map(
      (fetch, i) =>
        fetch &&
        ` cost ${checks![i]!.cost}, fetch ${fetch.seq}: used ${fetch.used}, holds ${fetch.held}, wants ${fetch.want}`,
    )
    .join();
}
