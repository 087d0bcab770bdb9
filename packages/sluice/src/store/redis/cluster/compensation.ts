/**
 * Gives charges under one hash tag back to their counters: refunds, and the undo of a part of a request that another part refused (the
 * compensating step of a saga).
 *
 * A refund is tried once, and its caller gets the failure. An undo has no caller that could repeat it: it is queued and retried, with
 * exponential backoff, until it succeeds or its charge has expired. Neither gives back twice, whichever answer was lost: a charge with a
 * request id is removed together with its record, and one without leaves a mark that it was undone.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { hashTag, requestIdKey, undoneKey } from "../../../keys.js";
import { type Charged, REMEMBER_MS } from "../../store.js";
import { mayHaveRun } from "../failure.js";
import type { Guard, SingleNodeStore } from "../single-node-store.js";
import type { IdRecords } from "./id-records.js";
import { type MovingSlots, slotIsMoving } from "./moving-slots.js";

interface Repayment {
  /** All under one hash tag, from one decision. */
  readonly charges: readonly Charged[];
  readonly id: string | undefined;
}

export interface Undo extends Repayment {
  /** The entry id of the attempt that gives up its claim on the charge; the charge is undone with its last claim. */
  readonly attempt: string;
  /** After this long the charge has expired by itself. */
  readonly lifeMs: number;
}

interface Pending {
  readonly undo: Undo;
  /** The name of its mark, which makes the undo idempotent. */
  readonly mark: string;
  endsAtMonotonicMs: number;
}

/** How long a mark remembers that an undo was done: one whose answer was lost is retried for slightly less. */
const MARK_MS = 30_000;
const AFTER_LOST_ANSWER_MS = 25_000;
const MOST_PENDING = 10_000;
const MOST_PER_ROUND = 100;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

const UNGUARDED: Guard = { kind: "" };

interface CompensationOptions {
  readonly node: SingleNodeStore;
  readonly records: IdRecords;
  readonly moving: MovingSlots;
}

export class Compensation {
  readonly #node: SingleNodeStore;
  readonly #records: IdRecords;
  readonly #moving: MovingSlots;
  #pending: Pending[] = [];
  #pauseMs = FIRST_PAUSE_MS;
  #retrying = false;
  #closed = false;
  #lost = 0;
  readonly #markStart = randomBytes(9).toString("base64url");
  #marks = 0;

  constructor({ node, records, moving }: CompensationOptions) {
    this.#node = node;
    this.#records = records;
    this.#moving = moving;
  }

  /** Undos waiting for a retry, and those given up: their charges stay until they expire. */
  get undos(): { pending: number; lost: number } {
    return { pending: this.#pending.length, lost: this.#lost };
  }

  /** True if given back. Rejects if that is unknown. */
  refund(repayment: Repayment): Promise<boolean> {
    return this.#give({ ...repayment, attempt: "", lifeMs: 0 }, guardOf(repayment));
  }

  /** Resolves when the undo is done or queued. */
  async undo(undo: Undo): Promise<void> {
    // Without the record it is unknown which attempts rely on a charge.
    const lifeMs = undo.id === undefined ? undo.lifeMs : Math.min(undo.lifeMs, REMEMBER_MS);
    await this.#try({ undo, mark: this.#newMark(), endsAtMonotonicMs: performance.now() + lifeMs });
  }

  /** Tries the queued undos once more. */
  async close(): Promise<void> {
    this.#closed = true;
    const left = this.#pending.splice(0);
    await Promise.all(left.map((pending) => this.#try(pending)));
  }

  async #try(pending: Pending): Promise<boolean> {
    try {
      await this.#give(pending.undo, guardOf(pending.undo, pending.mark));
      return true;
    } catch (error) {
      const nowMonotonicMs = performance.now();
      if (mayHaveRun(error)) {
        pending.endsAtMonotonicMs = Math.min(pending.endsAtMonotonicMs, nowMonotonicMs + AFTER_LOST_ANSWER_MS);
      }
      if (pending.endsAtMonotonicMs <= nowMonotonicMs) this.#lost++;
      else this.#queue(pending);
      return false;
    }
  }

  #queue(pending: Pending): void {
    if (this.#closed || this.#pending.length >= MOST_PENDING) {
      this.#lost++;
      return;
    }
    this.#pending.push(pending);
    if (!this.#retrying) void this.#retry();
  }

  /** Retries in rounds, oldest first, until none is left; those that fail again go to the end of the queue. */
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
    const tag = tagOf(undo);
    if (this.#moving.has(tag)) return await this.#giveKeyByKey(undo, guard);
    try {
      return await this.#node.giveBackCharges(undo.charges, guard, { attempt: undo.attempt });
    } catch (error) {
      if (!slotIsMoving(error)) throw error;
      this.#moving.add(tag);
      return await this.#giveKeyByKey(undo, guard);
    }
  }

  /**
   * While a slot is being migrated, Redis only runs scripts with one key. The record is dropped or the mark left first, and with it goes the
   * right to give back. What fails after that is retried as a charge without an id.
   */
  async #giveKeyByKey(undo: Undo, guard: Guard): Promise<boolean> {
    const { charges, attempt, id } = undo;
    if (guard.kind === "record") {
      const { entryId } = charges[0]!;
      if (!(await this.#records.drop(id!, tagOf(undo), { entryId, attempt }))) return false;
    }
    if (guard.kind === "mark" && !(await this.#leaveMark(guard))) return false;
    const keys = [...new Set(charges.map(({ check }) => check.key))];
    await Promise.all(keys.map((key) => this.#giveKey(undo, key)));
    return true;
  }

  /** False if an earlier try, whose answer was lost, has given back. */
  async #leaveMark(mark: Guard & { kind: "mark" }): Promise<boolean> {
    try {
      return await this.#node.leaveMark(mark);
    } catch (error) {
      if (!mayHaveRun(error)) throw error;
      // The next try would not know whose mark it finds.
      this.#lost++;
      return false;
    }
  }

  async #giveKey(undo: Undo, key: string): Promise<void> {
    const charges = undo.charges.filter(({ check }) => check.key === key);
    try {
      await this.#node.giveBackCharges(charges, UNGUARDED, { attempt: undo.attempt, isApart: true });
    } catch (error) {
      // Without a guard it is unknown whether it was done.
      if (mayHaveRun(error)) this.#lost++;
      else {
        const endsAtMonotonicMs = performance.now() + Math.max(undo.lifeMs, AFTER_LOST_ANSWER_MS);
        this.#queue({ undo: { ...undo, charges, id: undefined }, mark: this.#newMark(), endsAtMonotonicMs });
      }
    }
  }

  #newMark(): string {
    return `${this.#markStart}${(this.#marks++).toString(36)}`;
  }
}

function tagOf({ charges }: Repayment): string {
  return hashTag(charges[0]!.check.key);
}

/** A mark lies beside its counters. Without a mark, a charge without an id is unguarded. */
function guardOf(repayment: Repayment, mark?: string): Guard {
  const tag = tagOf(repayment);
  if (repayment.id !== undefined) return { kind: "record", key: requestIdKey(repayment.id, tag) };
  return mark === undefined ? UNGUARDED : { kind: "mark", key: undoneKey(mark, tag), lifeMs: MARK_MS };
}
