/**
 * Gives charges under one tag back to their counters: refunds, and the undo of a part of a request that was refused elsewhere.
 *
 * A refund is tried once, and its caller hears of a failure. An undo is nobody's to repeat: it waits here and is tried again, with
 * backoff, until it arrives or its charge has ended by itself. Neither gives back twice, whatever was lost on the way: a charge with a
 * request id goes with its record, one without leaves a mark that it was undone.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SluiceError } from "../../../errors.js";
import { hashTag, KEY_PREFIX, requestIdKey, undoneKey } from "../../../keys.js";
import { type Charged, REMEMBER_MS } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import type { Argument } from "../connection.js";
import { slotIsMoving } from "../decide-queue.js";
import { redisSays } from "../failure.js";
import { policyArguments } from "../wire.js";
import type { MovingTags } from "./moving-slots.js";

interface Repayment {
  /** All under one tag, of one decision. */
  readonly charges: readonly Charged[];
  readonly id: string | undefined;
}

export interface Undo extends Repayment {
  /** The entry id of the attempt that gives up its claim on the charge; the charge goes with its last claim. */
  readonly attempt: string;
  /** After this the charge has ended by itself. */
  readonly lifeMs: number;
}

interface Pending {
  readonly undo: Undo;
  /** What its mark is named. */
  readonly mark: string;
  endsAtMs: number;
}

/** What guards against giving back twice: nothing, the record of the request id, or a mark of this name. */
type Guard = "" | "record" | { readonly mark: string };

/** How long it is known that an undo was done: one whose answer was lost is tried again for a little less. */
const MARK_MS = 30_000;
const AFTER_LOST_ANSWER_MS = 25_000;
const MOST_PENDING = 10_000;
const MOST_PER_ROUND = 100;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export interface RepaymentsOptions {
  readonly calls: RedisCalls;
  /** On a single Redis all records lie under one tag. */
  readonly tagOf: (key: string) => string;
  readonly serverNowMs: () => number;
  readonly moving: MovingTags;
  /** Hears of counters that have more room now. */
  readonly onGivenBack: (keys: readonly string[]) => void;
}

export class Repayments {
  readonly #options: RepaymentsOptions;
  #pending: Pending[] = [];
  #pauseMs = FIRST_PAUSE_MS;
  #retrying = false;
  #closed = false;
  #lost = 0;
  readonly #markStart = randomBytes(9).toString("base64url");
  #marks = 0;

  constructor(options: RepaymentsOptions) {
    this.#options = options;
  }

  /** Undos that wait to be tried again, and those that were given up: their charges stay until they end. */
  get undos(): { pending: number; lost: number } {
    return { pending: this.#pending.length, lost: this.#lost };
  }

  /** True if given back. Rejects if that is not known. */
  refund(repayment: Repayment): Promise<boolean> {
    return this.#give({ ...repayment, attempt: "", lifeMs: 0 }, repayment.id === undefined ? "" : "record");
  }

  /** Resolves when it was done, or left for later. */
  async undo(undo: Undo): Promise<void> {
    // Without its record nobody can say who relies on a charge.
    const lifeMs = undo.id === undefined ? undo.lifeMs : Math.min(undo.lifeMs, REMEMBER_MS);
    await this.#try({ undo, mark: this.#newMark(), endsAtMs: performance.now() + lifeMs });
  }

  /** Tries what is left once more. */
  async close(): Promise<void> {
    this.#closed = true;
    const left = this.#pending.splice(0);
    await Promise.all(left.map((pending) => this.#try(pending)));
  }

  async #try(pending: Pending): Promise<boolean> {
    try {
      await this.#give(pending.undo, pending.undo.id === undefined ? pending : "record");
      return true;
    } catch (error) {
      const nowMs = performance.now();
      if (mayHaveRun(error)) pending.endsAtMs = Math.min(pending.endsAtMs, nowMs + AFTER_LOST_ANSWER_MS);
      if (this.#closed || pending.endsAtMs <= nowMs || this.#pending.length >= MOST_PENDING) this.#lost++;
      else this.#keep(pending);
      return false;
    }
  }

  #keep(pending: Pending): void {
    this.#pending.push(pending);
    if (!this.#retrying) void this.#retry();
  }

  /** Rounds of the oldest, until none is left; those that fail again go to the end of the queue. */
  async #retry(): Promise<void> {
    this.#retrying = true;
    while (this.#pending.length > 0) {
      await sleep(this.#pauseMs, undefined, { ref: false });
      const round = this.#pending.splice(0, MOST_PER_ROUND);
      const done = await Promise.all(round.map((pending) => this.#try(pending)));
      this.#pauseMs = done.includes(true) ? FIRST_PAUSE_MS : Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
    }
    this.#retrying = false;
  }

  async #give(undo: Undo, guard: Guard): Promise<boolean> {
    const tag = hashTag(undo.charges[0]!.check.key);
    if (this.#options.moving.has(tag)) return await this.#giveKeyByKey(undo, guard);
    try {
      return await this.#run(undo, guard);
    } catch (error) {
      if (!slotIsMoving(error)) throw error;
      this.#options.moving.add(tag);
      return await this.#giveKeyByKey(undo, guard);
    }
  }

  /**
   * While a slot is on its way Redis runs scripts of one key. The record goes first: with it goes the right to give back. What then
   * fails is tried again as a charge without an id.
   */
  async #giveKeyByKey(undo: Undo, guard: Guard): Promise<boolean> {
    const { charges, attempt } = undo;
    if (guard === "record") {
      const [{ entryId }] = charges as [Charged];
      const [, dropped] = (await this.#options.calls.run("record", this.#guardKeys(undo, guard), [
        "drop",
        entryId,
        attempt,
      ])) as unknown[];
      if (Number(dropped) === 0) return false;
    }
    const keys = [...new Set(charges.map(({ check }) => check.key))];
    await Promise.all(keys.map((key) => this.#giveKey(undo, key)));
    return true;
  }

  async #giveKey(undo: Undo, key: string): Promise<void> {
    const charges = undo.charges.filter(({ check }) => check.key === key);
    const alone = { ...undo, charges, id: undefined };
    await this.#run(alone, "").catch((error: unknown) => {
      // Without a guard nobody can say whether it was done.
      if (mayHaveRun(error) || this.#closed || this.#pending.length >= MOST_PENDING) this.#lost++;
      else {
        const endsAtMs = performance.now() + Math.max(undo.lifeMs, AFTER_LOST_ANSWER_MS);
        this.#keep({ undo: alone, mark: this.#newMark(), endsAtMs });
      }
    });
  }

  async #run(undo: Undo, guard: Guard): Promise<boolean> {
    const { calls, serverNowMs, onGivenBack } = this.#options;
    const { charges, attempt } = undo;
    const guards = this.#guardKeys(undo, guard);
    const args: Argument[] = [
      typeof guard === "string" ? guard : "mark",
      charges[0]!.entryId,
      attempt,
      MARK_MS,
      charges.length,
    ];
    charges.forEach(({ check, atMs }, i) => {
      args.push(guards.length + i + 1, ...policyArguments(check.plan.policy, serverNowMs()), check.cost, atMs);
    });
    const keys = [...guards, ...charges.map(({ check }) => KEY_PREFIX + check.key)];
    const [, given] = (await calls.run("refund", keys, args)) as unknown[];
    onGivenBack(charges.map(({ check }) => check.key));
    return Number(given) === 1;
  }

  #guardKeys({ charges, id }: Undo, guard: Guard): string[] {
    const { key } = charges[0]!.check;
    // A mark lies beside its counters even where records do not.
    if (typeof guard !== "string") return [KEY_PREFIX + undoneKey(guard.mark, hashTag(key))];
    return guard === "" ? [] : [KEY_PREFIX + requestIdKey(id!, this.#options.tagOf(key))];
  }

  #newMark(): string {
    return `${this.#markStart}${(this.#marks++).toString(36)}`;
  }
}

/** Errors by which Redis refuses a script before it runs. */
const NOT_RUN = /^(TRYAGAIN|CLUSTERDOWN|MOVED|ASK|LOADING|MASTERDOWN|READONLY|NOREPLICAS|MISCONF|NOAUTH|NOPERM)\b/;

export function mayHaveRun(error: unknown): boolean {
  return error instanceof SluiceError && error.mayHaveRun && redisSays(error, NOT_RUN) === null;
}
