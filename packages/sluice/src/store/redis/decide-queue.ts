/**
 * Batches requests: those of one turn of the event loop share script calls (`choose-script.ts` arranges them).
 * A lone request leaves at once, no timer is involved. Exact: requests of one turn are concurrent, so any order among them is right.
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

interface Waiting extends Addressed {
  readonly resolve: (reply: StoreReply) => void;
  readonly reject: (error: unknown) => void;
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

export class DecideQueue {
  readonly #calls: RedisCalls;
  readonly #reach: NodeReach | undefined;
  #waiting: Waiting[] = [];
  #callsUnderWay = 0;
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

  add(addressed: Omit<Addressed, "endsAtMonotonicMs">): Promise<StoreReply> {
    return this.#wait(addressed);
  }

  /** For a request of one key, where its tag's other keys are on another node: it shares a call only with requests for that key. */
  addApart(request: StoreRequest, endsAtMonotonicMs: number): Promise<StoreReply> {
    return this.#wait({ request, recordKey: undefined, endsAtMonotonicMs });
  }

  #wait({ request, recordKey, holdKey, isPart, endsAtMonotonicMs }: Addressed): Promise<StoreReply> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) this.#schedule();
      this.#waiting.push({ request, recordKey, holdKey, isPart, endsAtMonotonicMs, resolve, reject });
    });
  }

  /**
   * While nothing is under way a request leaves at once, with those of the same turn. Under load the next call waits for the end of
   * the event loop's round, which costs no time that anybody waits for, and takes along what other sockets bring in this round.
   */
  #schedule(): void {
    if (this.#callsUnderWay === 0) queueMicrotask(() => this.#flush());
    else setImmediate(() => this.#flush());
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (waiting.length === 1) this.#decide(scriptFor(waiting[0]!.request), waiting);
    else for (const { script, batch } of arrange(waiting, this.#reach?.of)) this.#decide(script, batch);
  }

  #decide(script: ScriptName, batch: readonly Waiting[], again: Again = {}): void {
    this.#callsUnderWay++;
    const ownEndMonotonicMs = again.endsAtMonotonicMs ?? this.#calls.endOf();
    this.#calls.counts.batchSizes.add(batch.length);
    const isCrossSlot = this.#reach !== undefined && crossesSlots(batch);
    this.#call({ script, batch, isCrossSlot, endsAtMonotonicMs: again.endsAtMonotonicMs }).then(
      (replies) => {
        this.#callsUnderWay--;
        for (let i = 0; i < batch.length; i++) {
          const reply = replies[i]!;
          if (typeof reply !== "string") batch[i]!.resolve(reply);
          else if (reply === "conflict") batch[i]!.reject(otherRequest());
          else this.#sendLateAgain(script, batch[i]!, ownEndMonotonicMs);
        }
      },
      (error) => {
        this.#callsUnderWay--;
        const { key } = batch[0]!.request.checks[0]!;
        if (isCrossSlot && this.#reach!.wasRefused(key, error)) this.#decideByTag(batch, error, ownEndMonotonicMs);
        else this.#failed(script, batch, error, again);
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
  #failed(script: ScriptName, batch: readonly Waiting[], error: unknown, again: Again): void {
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
    for (const { reject } of batch) reject(foreign ? foreignKey(this.#calls.keyPrefix) : error);
  }
}

function foreignKey(prefix: string): SluiceError {
  return new SluiceError(
    "store-unavailable",
    `Redis: a key under "${prefix}" holds something that Sluice did not write; delete it, or give Sluice a database of its own`,
  );
}
