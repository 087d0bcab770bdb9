/**
 * Lets the requests of one turn of the event loop share script calls.
 * A lone request leaves at once, no timer is involved. Requests of a single check go by algorithm to its own lean script,
 * where like ones (same counter, policy and cost) are one group; those that are all plain, to a leaner one still; all others go
 * to the script that can decide anything.
 * Exact: requests of one turn are concurrent, so any order among them is right.
 */
import { SluiceError } from "../../errors.js";
import { hashTag, KEY_PREFIX, storedAs } from "../../keys.js";
import { otherRequest, type StoreReply, type StoreRequest } from "../store.js";
import type { RedisCalls, ScriptName } from "./calls.js";
import { isScriptError, redisSays } from "./failure.js";
import { type Addressed, decodeDecide, decodeSingles, encodeDecide, encodeSingles } from "./wire.js";

interface Waiting extends Addressed {
  readonly resolve: (reply: StoreReply) => void;
  readonly reject: (error: unknown) => void;
}

/** Bounds what one script call may hold up Redis for. */
const MAX_REQUESTS_PER_CALL = 128;
const MAX_CHECKS_PER_CALL = 1_024;

export class DecideQueue {
  readonly #calls: RedisCalls;
  readonly #sharded: boolean;
  #waiting: Waiting[] = [];
  #callsUnderWay = 0;
  /** Redis's clock minus ours, from the last reply that told it: only calendar boundaries depend on it. */
  #clockAheadMs = 0;

  /** `sharded`: a call may only hold requests of one hash tag. */
  constructor(calls: RedisCalls, sharded: boolean) {
    this.#calls = calls;
    this.#sharded = sharded;
  }

  /** What Redis's clock says now, as far as we know. */
  get serverNowMs(): number {
    return Date.now() + this.#clockAheadMs;
  }

  add(request: StoreRequest, recordKey: string | undefined, isPart = false): Promise<StoreReply> {
    return this.#wait({ request, recordKey, isPart });
  }

  /** For a request of one key, where its tag's other keys are on another node: it shares a call only with requests for that key. */
  addApart(request: StoreRequest, endsAtMs: number): Promise<StoreReply> {
    return this.#wait({ request, recordKey: undefined, endsAtMs });
  }

  #wait({ request, recordKey, isPart, endsAtMs }: Addressed): Promise<StoreReply> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) this.#schedule();
      this.#waiting.push({ request, recordKey, isPart, endsAtMs, resolve, reject });
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
    if (waiting.length === 1) this.#decide(scriptFor(waiting[0]!.request), waiting, true);
    else for (const { script, batch } of arrange(waiting, this.#sharded)) this.#decide(script, batch, true);
  }

  #decide(script: ScriptName, batch: readonly Waiting[], mayMend: boolean): void {
    this.#callsUnderWay++;
    this.#calls.counts.batchSizes.add(batch.length);
    this.#call(script, batch).then(
      (replies) => {
        this.#callsUnderWay--;
        for (let i = 0; i < batch.length; i++) {
          const reply = replies[i];
          if (reply === undefined) batch[i]!.reject(otherRequest());
          else batch[i]!.resolve(reply);
        }
      },
      (error) => {
        this.#callsUnderWay--;
        this.#failed(script, batch, error, mayMend);
      },
    );
  }

  async #call(script: ScriptName, batch: readonly Waiting[]): Promise<(StoreReply | undefined)[]> {
    // The first came first: its end is the earliest.
    const { endsAtMs } = batch[0]!;
    if (script === "decide") {
      const { keys, args } = encodeDecide(batch, this.serverNowMs);
      return decodeDecide((await this.#calls.run(script, keys, args, endsAtMs)) as unknown[], batch);
    }
    const { keys, args, groups, plainScript } = encodeSingles(batch, this.serverNowMs);
    const reply =
      plainScript === undefined
        ? await this.#calls.run(script, keys, args, endsAtMs)
        : await this.#calls.run(plainScript, keys, args, endsAtMs).catch((error: unknown) => {
            // Some counter is not what the plain script is for. Nothing was written.
            if (!redisSays(error, /^LONG /)) throw error;
            return this.#calls.run(script, keys, args, endsAtMs);
          });
    return decodeSingles(reply as unknown[], groups, batch.length);
  }

  /** An error of one request must not be every request's: nothing was written, so the batch can be mended and sent again, once. */
  #failed(script: ScriptName, batch: readonly Waiting[], error: unknown, mayMend: boolean): void {
    const calendar = redisSays(error, /CALENDAR (\d+)/);
    if (calendar && mayMend) {
      // Our clock was more than a window off; Redis told its own, so the boundaries will be right.
      this.#clockAheadMs = Number(calendar[1]) - Date.now();
      this.#decide(script, batch, false);
      return;
    }
    const foreign = redisSays(error, /^WRONGTYPE /);
    // Of a script error it is not known whose numbers caused it: each is asked alone, and fails alone.
    if (batch.length > 1 && (foreign || isScriptError(error))) {
      for (const waiting of batch) this.#decide(script, [waiting], mayMend);
      return;
    }
    for (const { reject } of batch) reject(foreign ? foreignKey() : error);
  }
}

/** Which requests share which call, in the order of the calls: those of one script and, on a cluster, of one hash tag. */
export function arrange<T extends Addressed>(
  waiting: readonly T[],
  sharded: boolean,
): { script: ScriptName; batch: T[] }[] {
  const calls: { script: ScriptName; batch: T[] }[] = [];
  const open = new Map<string, { batch: T[]; checks: number }>();
  for (const addressed of waiting) {
    const script = scriptFor(addressed.request);
    const { key } = addressed.request.checks[0]!;
    const isApart = addressed.endsAtMs !== undefined;
    const lane = isApart ? `${script} ${key}` : sharded ? `${script} {${hashTag(key)}}` : script;
    let call = open.get(lane);
    if (call === undefined || call.batch.length === MAX_REQUESTS_PER_CALL || call.checks >= MAX_CHECKS_PER_CALL) {
      call = { batch: [], checks: 0 };
      open.set(lane, call);
      calls.push({ script, batch: call.batch });
    }
    call.batch.push(addressed);
    call.checks += addressed.request.checks.length + entriesOf(addressed.request);
  }
  return calls;
}

/** What a request of several units writes beyond its first, where each unit is an entry of a sorted set. */
function entriesOf({ checks }: StoreRequest): number {
  let entries = 0;
  for (const { cost, plan } of checks) if (cost > 1 && plan.policy.stored === "rolling-window") entries += cost - 1;
  return entries;
}

/** A single check without an id, to be charged, is decided by its algorithm's own script. */
function scriptFor({ checks, charge, id }: StoreRequest): ScriptName {
  const [first] = checks;
  if (
    checks.length !== 1 ||
    first === undefined ||
    !charge ||
    id !== undefined ||
    first.cost === 0 ||
    first.charge === true
  )
    return "decide";
  return `single-${storedAs[first.plan.policy.stored]}`;
}

/** A slot is on its way to another node, and only some of a script's keys have arrived there. Nothing was run. */
export function slotIsMoving(error: unknown): boolean {
  return redisSays(error, /^(TRYAGAIN|Too many Cluster redirections)\b/) !== null;
}

function foreignKey(): SluiceError {
  return new SluiceError(
    "store-unavailable",
    `Redis: a key under "${KEY_PREFIX}" holds something that Sluice did not write; delete it, or give Sluice a database of its own`,
  );
}
