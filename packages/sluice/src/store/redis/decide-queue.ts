/**
 * Batches requests: those of one turn of the event loop share script calls (`choose-script.ts` arranges them).
 * A lone request leaves at once, and many leave in parts, so that Redis begins early; no timer is involved. Exact: requests of one turn
 * are concurrent, so any order among them is right.
 */
import { SluiceError } from "../../errors.js";
import { hashTag } from "../../keys.js";
import { otherRequest, type StoreReply, type StoreRequest } from "../store.js";
import type { RedisCalls } from "./calls.js";
import { arrange, crossesSlots, plainScriptFor, type ScriptName, scriptFor, spansSlots } from "./choose-script.js";
import type { NodeReach } from "./cluster/node-reach.js";
import { isScriptError, lateRequest, redisSays } from "./failure.js";
import {
  type Addressed,
  decodeDecide,
  decodeSingles,
  encodeDecide,
  encodeSingles,
  type IdProblem,
  msOf,
} from "./wire.js";

/** Answers a request whose call failed, or throws. One function for all requests of a caller: a promise chained to each costs more. */
export type Otherwise = (request: StoreRequest, error: unknown, endsAtMonotonicMs: number) => Promise<StoreReply>;

interface Waiting extends Addressed {
  readonly resolve: (reply: StoreReply | Promise<StoreReply>) => void;
  readonly reject: (error: unknown) => void;
  readonly otherwise: Otherwise | undefined;
}

/** How a call stands to the one before it that failed. */
interface Again {
  /** Its boundaries of calendar windows were mended. */
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

/** Fewer would cost more, as a call of their own, than they gain by an early start. */
export const LEAST_AHEAD = 32;

/** Cheaper than `queueMicrotask`, which makes an async resource each time. */
const NOW = Promise.resolve();

export class DecideQueue {
  readonly #calls: RedisCalls;
  readonly #reach: NodeReach | undefined;
  #waiting: Waiting[] = [];
  /** Requests that have been sent and not answered. */
  #underWay = 0;
  #isScheduled = false;
  /** How many requests the last round had, and how many of this one have left already. */
  #lastCount = 0;
  #leftCount = 0;
  /** Redis's clock minus ours, as last reported: only calendar boundaries depend on it. */
  #clockAheadMs = 0;

  /** `reach`: of a script on a cluster; absent if one script reaches all keys. */
  constructor(calls: RedisCalls, reach: NodeReach | undefined) {
    this.#calls = calls;
    this.#reach = reach;
  }

  /** Redis's clock now, as far as we know. */
  get serverNowMs(): number {
    return Date.now() + this.#clockAheadMs;
  }

  add(addressed: Omit<Addressed, "endsAtMonotonicMs">, otherwise?: Otherwise): Promise<StoreReply> {
    return this.#wait(addressed, otherwise);
  }

  /** For a request of one key, where its tag's other keys are on another node: it shares a call only with requests for that key. */
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
   * While nothing is under way a request leaves at once, with those of the same callback. Under load the next call waits for the end of
   * the event loop's round, which costs no time that anybody waits for, and takes along what other sockets bring in this round. So it
   * does after a round of several requests: the first of as many sockets would leave alone, and cost what all of them do.
   */
  #schedule(): void {
    this.#isScheduled = true;
    if (this.#underWay === 0 && this.#lastCount <= 1) void NOW.then(this.#flush);
    else setImmediate(this.#flush);
  }

  /**
   * Part of a large round leaves ahead of the rest, where Redis has less to do than waits here: it decides that part while this process
   * reads the rest. A round that left as a whole would have the two take turns, each idle while the other works. On a cluster a round is
   * shared by several nodes, and goes as a whole: its parts would be small.
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
          if (typeof reply !== "string") batch[i]!.resolve(reply);
          else if (reply === "conflict") batch[i]!.reject(otherRequest());
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
   * Its caller still waits, and the reply has shown the server's time: sent now, it is late only if its id is given back once more
   * meanwhile. So there are never more calls than there were refunds and undos, and the deadline ends them.
   */
  #sendLateAgain(script: ScriptName, waiting: Waiting, ownEndMonotonicMs: number): void {
    const endsAtMonotonicMs = waiting.endsAtMonotonicMs ?? ownEndMonotonicMs;
    if (performance.now() < endsAtMonotonicMs) this.#decide(script, [{ ...waiting, endsAtMonotonicMs }]);
    else waiting.reject(lateRequest());
  }

  /** A node did not take a script over several slots, and nothing was written. A request over several of them is its caller's to split. */
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
    // The first came first: its end is the earliest.
    const endsAtMonotonicMs = batch[0]!.endsAtMonotonicMs ?? again.endsAtMonotonicMs;
    const run = (name: ScriptName, keys: string[], args: (string | number)[]): Promise<unknown> =>
      isCrossSlot
        ? this.#calls.runCrossSlot(name, keys, args, endsAtMonotonicMs)
        : this.#calls.run(name, keys, args, endsAtMonotonicMs);
    if (script === "decide" || script === "fetch" || script === "turns") {
      const { key } = batch[0]!.request.checks[0]!;
      const clock = { serverNowMs: this.serverNowMs, sentAtMs: this.#calls.sentAtMs(key) };
      const { keys, args } = encodeDecide(batch, clock, script);
      const reply = (await run(script, keys, args)) as unknown[];
      this.#calls.showed(key, msOf(reply[0]));
      return decodeDecide(reply, batch);
    }
    const { keys, args, groups, plainPolicy } = encodeSingles(batch, this.serverNowMs);
    const plainScript = plainPolicy && plainScriptFor(plainPolicy);
    const reply =
      plainScript === undefined
        ? await run(script, keys, args)
        : await run(plainScript, keys, args).catch((error: unknown) => {
            // The plain script does not handle the state of some counter. Nothing was written.
            if (!redisSays(error, /^LONG /)) throw error;
            return run(script, keys, args);
          });
    return decodeSingles(reply as unknown[], groups, batch.length);
  }

  /** An error of one request must not be every request's: nothing was written, so the batch can be mended and sent again, once. */
  #failed({ script, batch, error, ownEndMonotonicMs }: FailedCall, again: Again): void {
    const calendar = redisSays(error, /CALENDAR (\d+)/);
    if (calendar && !again.isMended) {
      // Our clock was more than a window off; Redis reported its own, so the boundaries will be right.
      this.#clockAheadMs = Number(calendar[1]) - Date.now();
      this.#decide(script, batch, { ...again, isMended: true });
      return;
    }
    const foreign = redisSays(error, /^WRONGTYPE /);
    // A script error does not say which request caused it: each is sent alone, and fails alone.
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

function foreignKey(prefix: string): SluiceError {
  return new SluiceError(
    "store-unavailable",
    `Redis: a key under "${prefix}" holds something that Sluice did not write; delete it, or give Sluice a database of its own`,
  );
}
