/**
 * Batches requests: those of one event-loop turn share script calls (`choose-script.ts` arranges them). A lone request leaves at once, and
 * a large batch leaves in parts, so that Redis can start early; no timer is involved. Batching is exact: requests of one turn are
 * concurrent, so any order among them is valid.
 */
import { SluiceError } from "../../errors.js";
import { hashTag } from "../../keys.js";
import { isRepeat } from "../asked-counters.js";
import { otherRequest, type StoreReply, type StoreRequest } from "../store.js";
import type { RedisCalls } from "./calls.js";
import { arrange, crossesSlots, plainScriptFor, type ScriptName, scriptFor, spansSlots } from "./choose-script.js";
import type { NodeReach } from "./cluster/node-reach.js";
import { CALENDAR, isScriptError, lateRequest, redisSays } from "./failure.js";
import { isMalformed } from "./script-reply.js";
import {
  type Addressed,
  decodeDecide,
  decodeSingles,
  encodeDecide,
  encodeSingles,
  type IdProblem,
  msOf,
} from "./wire.js";

/** Answers a request whose call failed, or throws. One shared function per caller: chaining a promise to each request costs more. */
export type Otherwise = (request: StoreRequest, error: unknown, endsAtMonotonicMs: number) => Promise<StoreReply>;

interface Waiting extends Addressed {
  readonly resolve: (reply: StoreReply | Promise<StoreReply>) => void;
  readonly reject: (error: unknown) => void;
  readonly otherwise: Otherwise | undefined;
}

/** Set for a call that repeats a failed one. */
interface Again {
  /** The boundaries of its calendar windows were corrected. */
  readonly isMended?: boolean;
  readonly endsAtMonotonicMs?: number;
}

interface Call {
  readonly script: ScriptName;
  readonly batch: readonly Waiting[];
  readonly isCrossSlot: boolean;
  readonly endsAtMonotonicMs: number | undefined;
}

interface FailedCall extends Pick<Call, "script" | "batch"> {
  readonly error: unknown;
  readonly ownEndMonotonicMs: number;
}

/** A smaller part would cost more as a separate call than an early start gains. */
export const LEAST_AHEAD = 32;

/** Cheaper than `queueMicrotask`, which creates an async resource each time. */
const NOW = Promise.resolve();

export class DecideQueue {
  readonly #calls: RedisCalls;
  readonly #reach: NodeReach | undefined;
  #waiting: Waiting[] = [];
  /** Requests in flight: sent and not answered. */
  #underWay = 0;
  #isScheduled = false;
  /** Size of the previous round, and how many requests of this round have already been sent. */
  #lastCount = 0;
  #leftCount = 0;
  /** Redis's clock minus ours, as last reported; only calendar boundaries depend on it. */
  #clockAheadMs = 0;

  /** `reach`: which keys a script reaches on a cluster; absent if one script reaches all keys. */
  constructor(calls: RedisCalls, reach: NodeReach | undefined) {
    this.#calls = calls;
    this.#reach = reach;
  }

  /** Redis's current time, as far as we know. */
  get serverNowMs(): number {
    return Date.now() + this.#clockAheadMs;
  }

  add(addressed: Omit<Addressed, "endsAtMonotonicMs">, otherwise?: Otherwise): Promise<StoreReply> {
    return this.#wait(addressed, otherwise);
  }

  /** For a request for one key while the other keys of its tag are on another node: it shares a call only with requests for that key. */
  addApart(request: StoreRequest, endsAtMonotonicMs: number): Promise<StoreReply> {
    return this.#wait({ request, recordKey: undefined, endsAtMonotonicMs });
  }

  #wait(
    { request, recordKey, holdKey, isPart, endsAtMonotonicMs }: Addressed,
    otherwise?: Otherwise,
  ): Promise<StoreReply> {
    return new Promise((resolve, reject) => {
      if (!this.#isScheduled) this.#schedule();
      this.#waiting.push({ request, recordKey, holdKey, isPart, endsAtMonotonicMs, resolve, reject, otherwise });
      const { length } = this.#waiting;
      if (length >= LEAST_AHEAD && length >= this.#underWay && this.#reach === undefined) this.#sendAhead();
    });
  }

  /**
   * While nothing is in flight, a request leaves at once, together with those of the same callback. Under load the next call waits for the
   * end of the event loop's round, which delays nobody, and takes along what other sockets bring in this round. The same applies after a
   * round of several requests: otherwise the first of as many sockets would send its request alone, at the cost of a call for all of them.
   */
  #schedule(): void {
    this.#isScheduled = true;
    if (this.#underWay === 0 && this.#lastCount <= 1) void NOW.then(this.#flush);
    else setImmediate(this.#flush);
  }

  /**
   * Sends part of a large round ahead of the rest, if Redis has less to do than is queued here: it decides that part while this process
   * reads the rest. If a round left as a whole, the two would take turns, each idle while the other works. On a cluster a round is split
   * over several nodes and leaves as a whole: its parts would be small.
   */
  #sendAhead(): void {
    this.#leftCount += this.#waiting.length;
    this.#send();
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    this.#lastCount = this.#leftCount + this.#waiting.length;
    this.#leftCount = 0;
    if (this.#waiting.length > 0) this.#send();
  };

  #send(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (waiting.length === 1) this.#decide(scriptFor(waiting[0]!.request), waiting);
    else for (const { script, batch } of arrange(waiting, this.#reach?.of)) this.#decide(script, batch);
  }

  #decide(script: ScriptName, batch: readonly Waiting[], again: Again = {}): void {
    this.#underWay += batch.length;
    const ownEndMonotonicMs = again.endsAtMonotonicMs ?? this.#calls.endOf();
    this.#calls.counts.batchSizes.add(batch.length);
    const isCrossSlot = this.#reach !== undefined && crossesSlots(batch);
    this.#call({ script, batch, isCrossSlot, endsAtMonotonicMs: again.endsAtMonotonicMs }).then(
      (replies) => {
        this.#underWay -= batch.length;
        for (let i = 0; i < batch.length; i++) {
          const reply = replies[i]!;
          if (reply === "conflict" || isOtherRequest(batch[i]!, reply)) batch[i]!.reject(otherRequest());
          else if (reply !== "late") batch[i]!.resolve(reply);
          else this.#sendLateAgain(script, batch[i]!, ownEndMonotonicMs);
        }
      },
      (error) => {
        this.#underWay -= batch.length;
        const { key } = batch[0]!.request.checks[0]!;
        if (isCrossSlot && this.#reach!.wasRefused(key, error)) this.#decideByTag(batch, error, ownEndMonotonicMs);
        else this.#failed({ script, batch, error, ownEndMonotonicMs }, again);
      },
    );
  }

  /**
   * The caller still waits, and the reply carried the server's time. Sent now, the request can only be late again if its id is given back
   * once more meanwhile. So there are at most as many calls as refunds and undos, and the deadline ends them.
   */
  #sendLateAgain(script: ScriptName, waiting: Waiting, ownEndMonotonicMs: number): void {
    const endsAtMonotonicMs = waiting.endsAtMonotonicMs ?? ownEndMonotonicMs;
    if (performance.now() < endsAtMonotonicMs) this.#decide(script, [{ ...waiting, endsAtMonotonicMs }]);
    else waiting.reject(lateRequest());
  }

  /** A node rejected a script over several slots, and nothing was written. The caller must split a request that itself spans several. */
  #decideByTag(batch: readonly Waiting[], error: unknown, endsAtMonotonicMs: number): void {
    const whole = batch.filter(({ request, reject }) => {
      const spans = spansSlots(request);
      if (spans) reject(error);
      return !spans;
    });
    for (const { script, batch: sameTag } of arrange(whole, hashTag))
      this.#decide(script, sameTag, { endsAtMonotonicMs });
  }

  async #call({ script, batch, isCrossSlot, ...again }: Call): Promise<(StoreReply | IdProblem)[]> {
    // The first request was queued first, so its deadline is the earliest.
    const endsAtMonotonicMs = batch[0]!.endsAtMonotonicMs ?? again.endsAtMonotonicMs;
    const run = (name: ScriptName, keys: string[], args: (string | number)[]): Promise<unknown> =>
      isCrossSlot
        ? this.#calls.runCrossSlot(name, keys, args, endsAtMonotonicMs)
        : this.#calls.run(name, keys, args, endsAtMonotonicMs);
    if (script === "decide" || script === "fetch" || script === "turns") {
      const { key } = batch[0]!.request.checks[0]!;
      const clock = { serverNowMs: this.serverNowMs, sentAtMs: this.#calls.sentAtMs(key) };
      const { keys, args } = encodeDecide(batch, clock, script);
      const reply = await run(script, keys, args);
      const replies = decodeDecide(reply, batch);
      this.#calls.showed(key, msOf((reply as unknown[])[0]));
      return replies;
    }
    const { keys, args, groups, plainPolicy } = encodeSingles(batch, this.serverNowMs);
    const plainScript = plainPolicy && plainScriptFor(plainPolicy);
    const reply =
      plainScript === undefined
        ? await run(script, keys, args)
        : await run(plainScript, keys, args).catch((error: unknown) => {
            // Some counter is in a state that the plain script does not handle. Nothing was written.
            if (!redisSays(error, /^LONG /)) throw error;
            return run(script, keys, args);
          });
    return decodeSingles(reply, groups, batch.length);
  }

  /** One request's error must not fail the others: nothing was written, so the batch can be corrected and sent again, once. */
  #failed({ script, batch, error, ownEndMonotonicMs }: FailedCall, again: Again): void {
    if (isMalformed(error)) this.#calls.counts.errors++;
    const calendar = redisSays(error, CALENDAR);
    if (calendar && !again.isMended) {
      // Our clock was off by more than a window. Redis reported its own, so the boundaries will now be right.
      this.#clockAheadMs = Number(calendar[1]) - Date.now();
      this.#decide(script, batch, { ...again, isMended: true });
      return;
    }
    const foreign = redisSays(error, /^WRONGTYPE /);
    // A script error does not name the request that caused it: each is sent alone, and fails alone.
    if (batch.length > 1 && (foreign || isScriptError(error))) {
      for (const waiting of batch) this.#decide(script, [waiting], again);
      return;
    }
    const reason = foreign ? foreignKey(this.#calls.keyPrefix) : error;
    for (const { request, resolve, reject, otherwise } of batch) {
      if (otherwise === undefined) reject(reason);
      else resolve(otherwise(request, reason, ownEndMonotonicMs));
    }
  }
}

/** A part of a request cannot tell; the code that joins the parts checks this. */
function isOtherRequest({ request, recordKey, isPart }: Addressed, reply: StoreReply | IdProblem): boolean {
  if (recordKey === undefined || isPart || typeof reply === "string" || reply.repeated === undefined) return false;
  return !isRepeat(request, reply.repeated);
}

function foreignKey(prefix: string): SluiceError {
  return new SluiceError(
    "store-unavailable",
    `Redis: a key under "${prefix}" holds something that Sluice did not write; delete it, or give Sluice a database of its own`,
  );
}
