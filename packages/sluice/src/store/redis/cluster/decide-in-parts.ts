/**
 * Decides a request on a cluster: slot by slot, in parallel, each slot all or nothing in itself.
 *
 * The life of such a request: split by hash tag -> each part one script, with the record of the request's id beside its counters ->
 * all passed, and the id's place is written: the reply; one refused, or failed: what the others charged is undone (`compensation.ts`),
 * then the refusal, or the error.
 * A slot on its way to another node is decided key by key.
 */
import { SluiceError } from "../../../errors.js";
import { KEY_PREFIX, requestIdKey } from "../../../keys.js";
import { otherRequest, REMEMBER_MS, type StoreReply, type StoreRequest } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import { type DecideQueue, slotIsMoving } from "../decide-queue.js";
import { decodeRecord, recordText, spellReceipt, spellVerdicts } from "../wire.js";
import { mayHaveRun, type Repayments, type Undo } from "./compensation.js";
import type { MovingTags } from "./moving-slots.js";
import type { RequestPlaces } from "./request-places.js";
import { joinReplies, type Part, splitByKey, splitByTag, undoOf } from "./split-by-tag.js";

/** The records of one request end this much apart at most: clocks that run unevenly, parts that waited. */
const ENDS_APART_MS = 10_000;

type Outcome = PromiseSettledResult<StoreReply>;

interface Settling {
  readonly settled: readonly Outcome[];
  readonly endsAtMs: number;
  /** The id was sent for another request. */
  readonly conflict?: unknown;
  /** Why a charge has no place under its id. */
  readonly placeless?: unknown;
}

export interface SlotDeciderOptions {
  readonly calls: RedisCalls;
  readonly queue: DecideQueue;
  readonly places: RequestPlaces;
  readonly repayments: Repayments;
  readonly moving: MovingTags;
}

export class SlotDecider {
  readonly #calls: RedisCalls;
  readonly #queue: DecideQueue;
  readonly #places: RequestPlaces;
  readonly #repayments: Repayments;
  readonly #moving: MovingTags;

  constructor({ calls, queue, places, repayments, moving }: SlotDeciderOptions) {
    this.#calls = calls;
    this.#queue = queue;
    this.#places = places;
    this.#repayments = repayments;
    this.#moving = moving;
  }

  decide(request: StoreRequest): Promise<StoreReply> {
    const endsAtMs = this.#calls.endOf();
    const parts = splitByTag(request);
    const [only] = parts;
    if (parts.length > 1 || request.id !== undefined) return this.#decideInParts(request, parts, endsAtMs);
    return this.#decidePart(only!, endsAtMs);
  }

  /** What lies under one tag, in one script; or key by key, while its slot is on its way to another node. */
  #decidePart({ tag, request }: Part, endsAtMs: number): Promise<StoreReply> {
    if (this.#moving.has(tag)) return this.#decideKeyByKey({ tag, request }, endsAtMs);
    return this.#queue.add(request, recordKey(request.id, tag), true).catch((error: unknown) => {
      if (!slotIsMoving(error)) throw error;
      this.#moving.add(tag);
      return this.#decideKeyByKey({ tag, request }, endsAtMs);
    });
  }

  /** Slot by slot, in parallel; if one part refuses, the others are undone. */
  async #decideInParts(request: StoreRequest, parts: readonly Part[], endsAtMs: number): Promise<StoreReply> {
    const decide = (part: Part): Promise<StoreReply> => this.#decidePart(part, endsAtMs);
    const [[place], settled] = await Promise.all([
      Promise.allSettled([this.#places.isOther(request, parts)]),
      Promise.allSettled(parts.map(decide)),
    ]);
    const stale = parts.length > 1 ? stalePlaces(settled) : [];
    for (const p of stale) settled[p] = await this.#decideAnew(parts[p]!, settled[p]!, decide);
    const conflict = place.status === "fulfilled" && place.value ? otherRequest() : undefined;
    // A charge without a place could not be refunded by its id. A refusal needs none.
    const placeless = place.status === "rejected" && settled.some(hasCharged) ? place.reason : undefined;
    return await this.#settle(parts, { settled, endsAtMs, conflict, placeless });
  }

  /** Forgets what an id was answered in one part, but not its charge, and decides it again. */
  async #decideAnew(
    part: Part,
    outcome: PromiseSettledResult<StoreReply>,
    decide: (part: Part) => Promise<StoreReply>,
  ): Promise<PromiseSettledResult<StoreReply>> {
    const { entryId } = (outcome as PromiseFulfilledResult<StoreReply>).value.repeated!;
    const key = KEY_PREFIX + recordKey(part.request.id, part.tag)!;
    const [anew] = await Promise.allSettled([
      this.#calls.run("record", [key], ["drop", entryId, ""]).then(() => decide(part)),
    ]);
    return anew;
  }

  /** The parts' outcomes as one reply. Nothing may stay charged for a request that was refused, or that cannot be decided. */
  async #settle(parts: readonly Part[], { settled, endsAtMs, conflict, placeless }: Settling): Promise<StoreReply> {
    const failure = conflict ?? failureOf(settled) ?? placeless;
    const replies = settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    if (failure !== undefined) {
      // The failure policy will answer, or the caller hears that the id is another request's.
      const answered = parts.filter((_, i) => settled[i]!.status === "fulfilled");
      if (conflict !== undefined) await this.#forgetUncharged(answered, replies);
      await this.#undo(
        answered.flatMap((part, i) => undoOf(part, replies[i]!)),
        endsAtMs,
      );
      throw failure;
    }
    if (parts.length === 1) return replies[0]!;
    const { reply, undos } = joinReplies(parts, replies);
    await this.#undo(undos, endsAtMs);
    return reply;
  }

  /** A part that was decided under an id of another request leaves no record of it: one that charged goes with its charge. */
  async #forgetUncharged(parts: readonly Part[], replies: readonly StoreReply[]): Promise<void> {
    const uncharged = parts.filter((_, p) => {
      const { repeated, verdicts } = replies[p]!;
      return repeated === undefined && !verdicts.some(({ charged }) => charged);
    });
    const drop = ({ tag, request }: Part): Promise<unknown> =>
      this.#calls.run("record", [KEY_PREFIX + recordKey(request.id, tag)!], ["drop", request.entryId, ""]);
    await Promise.allSettled(uncharged.map(drop));
  }

  /** Waits for them no longer than the check may take: what is not done by then is done later. */
  async #undo(undos: readonly Undo[], endsAtMs: number): Promise<void> {
    if (undos.length === 0) return;
    const done = Promise.all(undos.map((undo) => this.#repayments.undo(undo)));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, endsAtMs - performance.now()));
      done.finally(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /**
   * Redis runs no script with several keys while some of them are on another node. One key at a time it does, there or here; so
   * nothing goes uncounted while slots move. What is given up is the atomic look at the id: of two requests with one id that
   * arrive at the same time, both are charged, and the later one is undone.
   */
  async #decideKeyByKey(moving: Omit<Part, "places">, endsAtMs: number): Promise<StoreReply> {
    const { tag, request } = moving;
    const seen = await this.#seeRecord(moving, endsAtMs);
    if (seen !== undefined) return seen;
    const parts = splitByKey(request);
    const settled = await Promise.allSettled(parts.map((part) => this.#queue.addApart(part.request, endsAtMs)));
    const reply = await this.#settle(parts, { settled, endsAtMs });
    const record = recordKey(request.id, tag);
    if (record === undefined || !request.charge) return reply;
    const text = [request.fingerprint, request.entryId, spellVerdicts(reply), spellReceipt(request, reply.timesMs)];
    const whole: Part = { tag, places: [], request: { ...request, id: undefined } };
    try {
      if (await this.#putRecord(record, text, endsAtMs)) return reply;
    } catch (error) {
      // Nobody could refund the charge by its id.
      await this.#undo(undoOf(whole, reply), endsAtMs);
      throw error;
    }
    await this.#undo(undoOf(whole, reply), endsAtMs);
    return (await this.#seeRecord(moving, endsAtMs)) ?? reply;
  }

  /** False if another attempt's record is there. One whose answer is lost is put again; the decision stands if that is lost too. */
  async #putRecord(record: string, text: readonly string[], endsAtMs: number): Promise<boolean> {
    for (let isLast = false; ; isLast = true) {
      try {
        const put = ["put", ...text];
        const [, written] = (await this.#calls.run("record", [KEY_PREFIX + record], put, endsAtMs)) as unknown[];
        return Number(written) === 1;
      } catch (error) {
        // A second try that was not sent says nothing about the first.
        if (!isLast && !mayHaveRun(error)) throw error;
        if (isLast) return true;
      }
    }
  }

  async #seeRecord({ tag, request }: Omit<Part, "places">, endsAtMs: number): Promise<StoreReply | undefined> {
    const record = recordKey(request.id, tag);
    if (record === undefined) return undefined;
    const attempt = request.charge ? request.entryId : "";
    const args = ["see", request.fingerprint, attempt];
    const [nowMs, found] = (await this.#calls.run("record", [KEY_PREFIX + record], args, endsAtMs)) as unknown[];
    const text = recordText(found);
    if (text === undefined) return undefined;
    const reply = decodeRecord(text, Number(nowMs));
    if (reply === undefined) throw otherRequest();
    return reply;
  }
}

function hasCharged(outcome: Outcome): boolean {
  return outcome.status === "fulfilled" && outcome.value.verdicts.some(({ charged }) => charged);
}

/** Why a request cannot be answered, if it cannot. That an id was sent for another request stands whatever the other parts met. */
function failureOf(settled: readonly Outcome[]): unknown {
  const reasons = settled.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  const isMistake = (reason: unknown): boolean => reason instanceof SluiceError && reason.code === "invalid-request";
  return reasons.find(isMistake) ?? reasons[0];
}

/**
 * The parts of a request that must not answer for an earlier one: others were decided now, and the records of these are so old that
 * those others' may have ended. A repetition that is timed so would else be charged in some of its rules only.
 */
function stalePlaces(settled: readonly Outcome[]): number[] {
  const replies = settled.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : undefined));
  if (!replies.some((reply) => reply !== undefined && reply.repeated === undefined)) return [];
  return [...replies.keys()].filter((p) => {
    const { repeated, nowMs = 0 } = replies[p] ?? {};
    return repeated !== undefined && repeated.atMs - nowMs > REMEMBER_MS - ENDS_APART_MS;
  });
}

function recordKey(id: string | undefined, tag: string): string | undefined {
  return id === undefined ? undefined : requestIdKey(id, tag);
}
