/**
 * Counters that one script can reach: all keys of a single Redis, or on a cluster those of one node or hash tag. Each call is one script
 * (or one command) and atomic.
 */
import type { Check } from "../../check.js";
import { hashTag, holdKey, letterOf, requestIdKey, storedAs, turnsKey } from "../../keys.js";
import type { Amounts, ExtendReply, ReservationState, Reserved, SettleReply } from "../reserved.js";
import type { Charged, LeaseRequest, MadeAt, RefundRequest, StoreReply, StoreRequest } from "../store.js";
import type { RedisCalls } from "./calls.js";
import type { NodeReach } from "./cluster/node-reach.js";
import type { Argument } from "./connection.js";
import type { Counters } from "./counters.js";
import { DecideQueue, type Otherwise } from "./decide-queue.js";
import { Holds } from "./holds.js";
import { arrayIn, malformed, numbersNamed, textOrNothing } from "./script-reply.js";
import { decodeRecord, msOf, policyArguments, recordText } from "./wire.js";

interface SingleNodeOptions {
  readonly calls: RedisCalls;
  /** On a cluster: which keys one script reaches. Absent on a single Redis, where it reaches all. */
  readonly reach?: NodeReach;
  /** Whether a request may be one of several parts: then each attempt that relies on a record is noted in it (id-record.lua). */
  readonly claimsRecords: boolean;
  /** Called with the keys of counters that have more room now. */
  readonly onGivenBack: (keys: readonly string[]) => void;
  /** The same, for a settlement. */
  readonly onSettled: (keys: readonly string[]) => void;
}

/**
 * The guard against giving charges back twice: none; the record of the request id, which is removed together with its charge; or a separate
 * mark that lives for a while.
 */
export type Guard = { readonly kind: "" } | { readonly kind: "record"; readonly key: string } | Mark;

interface Mark {
  readonly kind: "mark";
  readonly key: string;
  readonly lifeMs: number;
}

/** On a single Redis one script reaches all keys, whatever their tags, so the records of request ids share one tag. */
const SHARED_TAG = "*";
const NO_UNDOS = { pending: 0, lost: 0 };

interface GivingBack {
  /** The entry id of an attempt that gives up its claim on the charges, which are undone with their last claim; "" for a refund. */
  readonly attempt?: string;
  /** For a slot that is being migrated, where a script has one key: turns are spent, not vacated. */
  readonly isApart?: boolean;
  readonly madeAt?: MadeAt | undefined;
}

export class SingleNodeStore implements Counters {
  readonly #calls: RedisCalls;
  readonly #queue: DecideQueue;
  readonly #options: SingleNodeOptions;
  readonly #holds: Holds;
  readonly undos = NO_UNDOS;

  constructor(options: SingleNodeOptions) {
    this.#options = options;
    this.#calls = options.calls;
    this.#queue = new DecideQueue(options.calls, options.reach);
    this.#holds = new Holds({
      calls: options.calls,
      serverNowMs: () => this.#queue.serverNowMs,
      onSettled: options.onSettled,
    });
  }

  /** `otherwise` answers if the call fails. */
  decide(request: StoreRequest, otherwise?: Otherwise): Promise<StoreReply> {
    const { id, checks } = request;
    const recordKey = id === undefined ? undefined : this.#recordKey(id, checks[0]!.key);
    const holdKey = request.holdMs === undefined ? undefined : this.#holdKey(request.entryId, checks[0]!.key);
    return this.#queue.add({ request, recordKey, holdKey, isPart: this.#options.claimsRecords }, otherwise);
  }

  /** For a request for one key while the other keys of its tag are on another node. */
  decideApart(request: StoreRequest, endsAtMonotonicMs: number): Promise<StoreReply> {
    return this.#queue.addApart(request, endsAtMonotonicMs);
  }

  /** `tag`: the hash tag of the record. */
  async recall(id: string, tag = SHARED_TAG): Promise<StoreReply | undefined> {
    const text = recordText(textOrNothing(await this.#calls.call("GET", requestIdKey(id, tag))));
    return text === undefined ? undefined : (decodeRecord(text, this.#queue.serverNowMs) as StoreReply);
  }

  refund({ charges, id }: RefundRequest, madeAt?: MadeAt): Promise<boolean> {
    const [{ check }] = charges as [Charged];
    const guard: Guard = id === undefined ? { kind: "" } : { kind: "record", key: this.#recordKey(id, check.key) };
    return this.giveBackCharges(charges, guard, { madeAt });
  }

  async giveBackCharges(
    charges: readonly Charged[],
    guard: Guard,
    { attempt = "", isApart = false, madeAt }: GivingBack = {},
  ): Promise<boolean> {
    const guards = guard.kind === "" ? [] : [guard.key];
    const args: Argument[] = [
      guard.kind,
      charges[0]!.entryId,
      attempt,
      guard.kind === "mark" ? guard.lifeMs : 0,
      charges.length,
    ];
    const keys = charges.map(({ check }) => check.key);
    const vacant: string[] = [];
    charges.forEach(({ check, atMs, bookedMs = atMs, owed }, i) => {
      // The records of older instances do not name it: `undefined > 0` is false.
      const hasTurns = check.plan.maxWaitMs > 0;
      if (hasTurns && !isApart) vacant.push(turnsKey(check.key));
      const vacantAt = !hasTurns ? 0 : isApart ? -1 : guards.length + keys.length + vacant.length;
      args.push(guards.length + i + 1, ...this.#policyArguments(check), check.cost, atMs, owed, vacantAt, bookedMs);
    });
    const all = [...guards, ...keys, ...vacant];
    const [nowUs, given] = numbersNamed(await this.#calls.run("refund", all, args), "now_us", "given");
    this.#calls.showed(keys[0]!, msOf(nowUs));
    note(madeAt, nowUs);
    this.#options.onGivenBack(keys);
    return given === 1;
  }

  /** Leaves the mark of an undo, without giving anything back. False if it was there: the undo was done. */
  async leaveMark({ key, lifeMs }: Mark): Promise<boolean> {
    const reply = await this.#calls.run("refund", [key], ["mark", "", "", lifeMs, 0]);
    const [nowUs, isLeft] = numbersNamed(reply, "now_us", "is_left");
    this.#calls.showed(key, msOf(nowUs));
    return isLeft === 1;
  }

  async giveBack(checks: readonly Check[], madeAt?: MadeAt): Promise<boolean> {
    const costly = checks.filter(({ cost }) => cost > 0);
    if (costly.length === 0) return false;
    const keys = costly.map(({ key }) => key);
    const args = costly.flatMap((check) => [...this.#policyArguments(check), check.cost]);
    const [nowUs, given] = numbersNamed(await this.#calls.run("give-back", keys, args), "now_us", "given");
    note(madeAt, nowUs);
    this.#options.onGivenBack(keys);
    return given === 1;
  }

  async release(lease: LeaseRequest, madeAt?: MadeAt): Promise<boolean> {
    return (await this.#runLease("release", lease, madeAt)) > 0;
  }

  renew(lease: LeaseRequest, madeAt?: MadeAt): Promise<number> {
    return this.#runLease("renew", lease, madeAt);
  }

  async #runLease(step: "release" | "renew", { places }: LeaseRequest, madeAt?: MadeAt): Promise<number> {
    const keys = places.map(({ key }) => key);
    const args = [step, ...places.flatMap((held) => [held.entryId, held.places, held.ttlMs])];
    const [nowUs, answer] = numbersNamed(await this.#calls.run("lease", keys, args), "now_us", "lease");
    note(madeAt, nowUs);
    return answer!;
  }

  /** One script reaches all counters of the reservation. */
  settle(reserved: Reserved, amounts: Amounts, name: string): Promise<SettleReply> {
    return this.#holds.settle(reserved, { amounts, name }, this.#holdKeyOf(reserved));
  }

  extend(reserved: Reserved, amounts: Amounts): Promise<ExtendReply> {
    return this.#holds.extend(reserved, amounts, this.#holdKeyOf(reserved));
  }

  holdState(reserved: Reserved): Promise<ReservationState> {
    return this.#holds.stateOf(reserved, this.#holdKeyOf(reserved));
  }

  /** Access to the record of the hold alone: for slots that are being migrated. */
  get holds(): Holds {
    return this.#holds;
  }

  #holdKeyOf({ counters }: Reserved): string {
    return this.#holdKey(counters[0]!.entryId, counters[0]!.key);
  }

  /** A reservation's hold has the hash tag of its first counter. */
  #holdKey(entryId: string, firstKey: string): string {
    return holdKey(entryId, this.#tagOf(firstKey));
  }

  async block(key: string, lengthMs: number, madeAt?: MadeAt): Promise<void> {
    const [nowUs] = numbersNamed(await this.#calls.run("block", [key], ["put", 1, lengthMs]), "now_us");
    note(madeAt, nowUs);
  }

  async inspect(checks: readonly Check[]): Promise<Record<string, number>[]> {
    if (checks.length === 0) return [];
    const keys = checks.map(({ key }) => key);
    const letters = checks.map(({ plan }) => storedAs[plan.policy.stored]);
    const states = arrayIn(await this.#calls.run("inspect", keys, letters), "an array of states");
    if (states.length !== keys.length) throw malformed(`${keys.length} states`, states);
    return states.map(readCounter);
  }

  async reset(keys: readonly string[], madeAt?: MadeAt): Promise<void> {
    const [nowUs] = numbersNamed(await this.#calls.run("reset", keys, keys.map(letterOf)), "now_us");
    note(madeAt, nowUs);
  }

  async close(): Promise<void> {}

  #tagOf(key: string): string {
    return this.#options.reach === undefined ? SHARED_TAG : hashTag(key);
  }

  /** The record of a request id has the hash tag of its first counter. */
  #recordKey(id: string, firstKey: string): string {
    return requestIdKey(id, this.#tagOf(firstKey));
  }

  #policyArguments({ plan }: Check): Argument[] {
    return policyArguments(plan.policy, this.#queue.serverNowMs);
  }
}

function readCounter(text: unknown): Record<string, number> {
  try {
    const numbers = JSON.parse(String(text));
    if (typeof numbers === "object" && numbers !== null) return numbers;
  } catch {
    // Handled like JSON of another shape.
  }
  throw malformed("the numbers of a counter as JSON", text);
}

function note(madeAt: MadeAt | undefined, nowUs: unknown): void {
  if (madeAt !== undefined) madeAt.us = Number(nowUs);
}
