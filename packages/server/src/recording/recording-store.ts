/**
 * A store decorator that records the requests to another store and its decisions, in the order of its answers. Off the check path: a line
 * is serialised and queued, nothing waits for a disk. Without `--record` the store is not wrapped and checks cost nothing extra.
 *
 * Times are the store's own. A memory store is given `clock` and reads it just before its answer; Redis reports the time of every change in
 * microseconds, which gives the order of its changes, whichever instance made them and whenever its answers arrive.
 */
import type { Store } from "sluice";
import type {
  AskedKey,
  AskedPart,
  Check,
  CheckRequest,
  LeaseRequest,
  MadeAt,
  MaybePromise,
  RefundRequest,
  StoreReply,
  StoreRequest,
} from "sluice/internal";
import type { Recorder } from "./recorder.js";
import { type LineTime, timeOfUs } from "./recording-lines.js";

/** Reads the system clock and remembers the value. */
export class RememberedClock {
  lastMs = 0;

  now(): number {
    this.lastMs = Date.now();
    return this.lastMs;
  }
}

interface RecordingStoreOptions {
  readonly store: Store;
  readonly recorder: Recorder;
  /** The memory store's clock; absent for a store that reports its own time. */
  readonly clock?: RememberedClock | undefined;
}

export class RecordingStore implements Store {
  readonly namesRequests = true;
  readonly isRemote: boolean;
  readonly #store: Store;
  readonly #recorder: Recorder;
  readonly #clock: RememberedClock | undefined;
  /** The store's clock minus ours, as of the last decision. */
  #aheadMs = 0;
  declare countInstances?: NonNullable<Store["countInstances"]>;
  declare shareReports?: NonNullable<Store["shareReports"]>;
  declare shareLimits?: NonNullable<Store["shareLimits"]>;
  declare stats?: NonNullable<Store["stats"]>;
  declare memory?: NonNullable<Store["memory"]>;
  declare blocks?: NonNullable<Store["blocks"]>;

  constructor({ store, recorder, clock }: RecordingStoreOptions) {
    this.#store = store;
    this.#recorder = recorder;
    this.#clock = clock;
    recorder.storeNowMs = () => this.#clock?.now() ?? Date.now() + this.#aheadMs;
    this.isRemote = store.isRemote === true;
    // Optional methods stay absent if the store lacks them.
    if (store.countInstances !== undefined) this.countInstances = (...args) => store.countInstances!(...args);
    if (store.shareReports !== undefined) this.shareReports = (report) => store.shareReports!(report);
    if (store.shareLimits !== undefined) this.shareLimits = (request) => store.shareLimits!(request);
    if (store.stats !== undefined) this.stats = () => store.stats!();
    if (store.blocks !== undefined) this.blocks = () => store.blocks!();
    if (store.memory !== undefined) this.memory = () => store.memory!();
  }

  /** The limiter's requests carry the caller's original attributes. */
  decide(request: StoreRequest): MaybePromise<StoreReply> {
    return this.#then(this.#store.decide(request), (reply) => this.#decided(request as CheckRequest, reply));
  }

  #decided(request: CheckRequest, reply: StoreReply): void {
    const at = reply.repeated?.atMs ?? reply.nowMs;
    if (this.#clock === undefined && reply.isRemembered !== true) this.#aheadMs = at - Date.now();
    // Fetches of prefetched units belong to no caller's request.
    if (request.attributes === undefined) return;
    if (request.together !== undefined) {
      // If there was no room for all of them, each is requested individually.
      if (reply.verdicts[0]!.allowed)
        for (const one of request.together) this.#recorder.decided(one as CheckRequest, reply, at);
      return;
    }
    // Peeks charge nothing; but a refused one may keep a counter alive (a rule whose window grew).
    if (!request.charge && reply.verdicts.every(({ allowed }) => allowed)) return;
    this.#recorder.decided(request, reply, at);
  }

  recall(id: string): MaybePromise<StoreReply | undefined> {
    return this.#store.recall(id);
  }

  refund(request: RefundRequest): MaybePromise<boolean> {
    const madeAt: MadeAt = {};
    return this.#then(this.#store.refund(request, madeAt), (refunded) => {
      if (refunded) this.#recorder.refunded(request, this.#timeOf(madeAt));
    });
  }

  giveBack(checks: readonly Check[], asked: readonly AskedPart[] = []): MaybePromise<boolean> {
    const madeAt: MadeAt = {};
    const { rulesVersion } = this.#recorder;
    // Even if nothing was owed: another instance with older numbers refills more slowly, and its bucket may still have lacked it.
    return this.#then(this.#store.giveBack(checks, asked, madeAt), () => {
      this.#recorder.gaveBack(asked, rulesVersion, this.#timeOf(madeAt));
    });
  }

  release(lease: LeaseRequest): MaybePromise<boolean> {
    const madeAt: MadeAt = {};
    return this.#then(this.#store.release(lease, madeAt), (released) => {
      if (released) this.#recorder.leaseEnded(lease, this.#timeOf(madeAt));
    });
  }

  renew(lease: LeaseRequest): MaybePromise<number> {
    const madeAt: MadeAt = {};
    return this.#then(this.#store.renew(lease, madeAt), (expiresAfterMs) => {
      // A lost lease is released completely.
      if (expiresAfterMs === 0) this.#recorder.leaseEnded(lease, this.#timeOf(madeAt));
      else this.#recorder.leaseRenewed(lease, this.#timeOf(madeAt));
    });
  }

  settle(...args: Parameters<Store["settle"]>): ReturnType<Store["settle"]> {
    return this.#then(this.#store.settle(...args), () => this.#recorder.lacks());
  }

  extend(...args: Parameters<Store["extend"]>): ReturnType<Store["extend"]> {
    return this.#then(this.#store.extend(...args), () => this.#recorder.lacks());
  }

  holdState(...args: Parameters<Store["holdState"]>): ReturnType<Store["holdState"]> {
    return this.#store.holdState(...args);
  }

  learn(...args: Parameters<Store["learn"]>): ReturnType<Store["learn"]> {
    return this.#store.learn(...args);
  }

  inspect(checks: readonly Check[]): ReturnType<Store["inspect"]> {
    return this.#store.inspect(checks);
  }

  reset(keys: readonly string[], asked?: AskedKey): MaybePromise<void> {
    const madeAt: MadeAt = {};
    const { rulesVersion } = this.#recorder;
    return this.#then(this.#store.reset(keys, asked, madeAt), () => {
      if (asked !== undefined) this.#recorder.wasReset(asked, rulesVersion, this.#timeOf(madeAt));
    });
  }

  block(key: string, lengthMs: number, asked?: AskedKey): MaybePromise<void> {
    const madeAt: MadeAt = {};
    const { rulesVersion } = this.#recorder;
    return this.#then(this.#store.block(key, lengthMs, asked, madeAt), () => {
      if (asked !== undefined) this.#recorder.wasBlocked({ ...asked, lengthMs }, rulesVersion, this.#timeOf(madeAt));
    });
  }

  askForPool(...args: Parameters<Store["askForPool"]>): ReturnType<Store["askForPool"]> {
    return this.#store.askForPool(...args);
  }

  fillPool(...args: Parameters<Store["fillPool"]>): ReturnType<Store["fillPool"]> {
    return this.#store.fillPool(...args);
  }

  ready(): MaybePromise<boolean> {
    return this.#store.ready();
  }

  get whyNotReady(): unknown {
    return this.#store.whyNotReady;
  }

  close(): MaybePromise<void> {
    return this.#store.close();
  }

  #timeOf({ us }: MadeAt): LineTime {
    if (us !== undefined) return timeOfUs(us);
    return { at: this.#clock?.lastMs ?? Date.now() + this.#aheadMs };
  }

  /** Synchronous if the store is, so that no other request comes between its answer and its line. */
  #then<T>(answer: MaybePromise<T>, record: (answered: T) => void): MaybePromise<T> {
    if (!(answer instanceof Promise)) {
      record(answer);
      return answer;
    }
    return answer.then((answered) => {
      record(answered);
      return answered;
    });
  }
}
