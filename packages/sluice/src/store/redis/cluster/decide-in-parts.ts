/**
 * Decides a request on a cluster: node by node (or slot by slot), in parallel, each part all or nothing in itself.
 *
 * The life of such a request: split by what one script reaches (`node-reach.ts`) -> each part one script, with the record of the request's
 * id beside its counters -> all passed, and the id's place is written: the reply; one refused, or failed: what the others charged is
 * undone (`compensation.ts`), then the refusal, or the error. Parts in a moving slot are decided by tag, then key by key.
 */
import { SluiceError } from "../../../errors.js";
import { hashTag } from "../../../keys.js";
import { otherRequest, REMEMBER_MS, type StoreReply, type StoreRequest } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import { spansSlots } from "../choose-script.js";
import type { Otherwise } from "../decide-queue.js";
import type { SingleNodeStore } from "../single-node-store.js";
import { Blocks } from "./blocks.js";
import type { ClusterHolds } from "./cluster-holds.js";
import type { Compensation, Undo } from "./compensation.js";
import { besideHeld, GrantsChanged, heldElsewhere } from "./held-elsewhere.js";
import type { IdRecords } from "./id-records.js";
import { type MovingSlots, slotIsMoving } from "./moving-slots.js";
import type { NodeReach } from "./node-reach.js";
import type { RequestPlaces } from "./request-places.js";
import { joinReplies, type Part, splitByKey, splitByTag, undoOf } from "./split-by-tag.js";

/** The records of one request end this much apart at most: clocks that run unevenly, parts that waited. */
const ENDS_APART_MS = 10_000;

/** A slot that begins to move again, each time between a fetch and its end: after so many, the failure policy answers. */
const MOST_ATTEMPTS = 4;

/** Where the check of a request of one stands. */
const ONLY = [0];

type Outcome = PromiseSettledResult<StoreReply>;

interface Settling {
  readonly settled: readonly Outcome[];
  readonly endsAtMonotonicMs: number;
  /** The id was sent for another request. */
  readonly conflict?: unknown;
  /** Why a charge has no place under its id. */
  readonly placeless?: unknown;
}

interface PartsDeciderOptions {
  readonly calls: RedisCalls;
  readonly node: SingleNodeStore;
  readonly records: IdRecords;
  readonly places: RequestPlaces;
  readonly compensation: Compensation;
  readonly moving: MovingSlots;
  readonly reach: NodeReach;
  readonly holds: ClusterHolds;
}

export class PartsDecider {
  readonly #calls: RedisCalls;
  readonly #node: SingleNodeStore;
  readonly #records: IdRecords;
  readonly #places: RequestPlaces;
  readonly #compensation: Compensation;
  readonly #moving: MovingSlots;
  readonly #reach: NodeReach;
  readonly #blocks: Blocks;
  readonly #holds: ClusterHolds;

  constructor({ calls, node, records, places, compensation, moving, reach, holds }: PartsDeciderOptions) {
    this.#reach = reach;
    this.#holds = holds;
    this.#calls = calls;
    this.#node = node;
    this.#records = records;
    this.#places = places;
    this.#compensation = compensation;
    this.#moving = moving;
    this.#blocks = new Blocks(calls);
  }

  decide(request: StoreRequest): Promise<StoreReply> {
    // Most requests have one check: they are made a part of only once it matters.
    if (request.checks.length === 1 && request.id === undefined) {
      return this.#moving.size === 0
        ? this.#node.decide(request, this.#whenFailed)
        : this.#decidePart(onlyPart(request), this.#calls.endOf());
    }
    return this.#decideAll(request, splitByTag(request, this.#reachOf(request)), this.#calls.endOf());
  }

  /** For a request of one check. */
  readonly #whenFailed: Otherwise = async (request, error, endsAtMonotonicMs) => {
    if (!slotIsMoving(error)) throw error;
    const part = onlyPart(request);
    this.#moving.add(part.tag);
    return await this.#decideMoving(part, endsAtMonotonicMs, 1);
  };

  /** What is written beside the counters, a record or a hold, lies under a tag: such a request is decided by tag. */
  #reachOf({ id, holdMs }: StoreRequest): (key: string) => string {
    return id === undefined && holdMs === undefined ? this.#reach.of : hashTag;
  }

  #decideAll(request: StoreRequest, parts: readonly Part[], endsAtMonotonicMs: number): Promise<StoreReply> {
    const [only] = parts;
    if (parts.length > 1 || request.id !== undefined) return this.#decideInParts(request, parts, endsAtMonotonicMs);
    return this.#decidePart(only!, endsAtMonotonicMs);
  }

  /** Decides checks within one script's reach in one script; or by tag, or key by key, while a slot is moving. */
  #decidePart(part: Part, endsAtMonotonicMs: number, attempt = 1): Promise<StoreReply> {
    const { tag, request } = part;
    if (spansSlots(request)) return this.#decideOnNode(request, endsAtMonotonicMs);
    if (this.#moving.has(tag)) return this.#decideMoving(part, endsAtMonotonicMs, attempt);
    return this.#node.decide(request).catch((error: unknown) => {
      if (!slotIsMoving(error)) throw error;
      this.#moving.add(tag);
      return this.#decideMoving(part, endsAtMonotonicMs, attempt);
    });
  }

  #decideMoving(part: Part, endsAtMonotonicMs: number, attempt: number): Promise<StoreReply> {
    return this.#decideKeyByKey(part.tag, part.request, endsAtMonotonicMs).catch((error: unknown) => {
      if (!(error instanceof GrantsChanged) || attempt === MOST_ATTEMPTS) throw error;
      this.#moving.delete(part.tag);
      return this.#decidePart(part, endsAtMonotonicMs, attempt + 1);
    });
  }

  /** Over several slots of one node; by tag if it does not take them together. */
  #decideOnNode(request: StoreRequest, endsAtMonotonicMs: number): Promise<StoreReply> {
    return this.#node.decide(request).catch((error: unknown) => {
      if (!this.#reach.wasRefused(request.checks[0]!.key, error)) throw error;
      return this.#decideAll(request, splitByTag(request), endsAtMonotonicMs);
    });
  }

  /** Part by part, in parallel; if one part refuses, the others are undone. */
  async #decideInParts(request: StoreRequest, parts: readonly Part[], endsAtMonotonicMs: number): Promise<StoreReply> {
    const decide = (part: Part): Promise<StoreReply> => this.#decidePart(part, endsAtMonotonicMs);
    const [[place], settled] = await Promise.all([
      Promise.allSettled([this.#places.isOther(request, parts)]),
      Promise.allSettled(parts.map(decide)),
    ]);
    const stale = parts.length > 1 ? stalePlaces(settled) : [];
    for (const p of stale) settled[p] = await this.#decideAnew(parts[p]!, settled[p]!, decide);
    const conflict = place.status === "fulfilled" && place.value ? otherRequest() : undefined;
    // A charge without a place could not be refunded by its id. A refusal needs none.
    const placeless = place.status === "rejected" && settled.some(hasCharged) ? place.reason : undefined;
    return await this.#settle(parts, { settled, endsAtMonotonicMs, conflict, placeless });
  }

  /** Forgets what an id was answered in one part, but not its charge, and decides it again. */
  async #decideAnew(
    part: Part,
    outcome: PromiseSettledResult<StoreReply>,
    decide: (part: Part) => Promise<StoreReply>,
  ): Promise<PromiseSettledResult<StoreReply>> {
    const { entryId } = (outcome as PromiseFulfilledResult<StoreReply>).value.repeated!;
    const [anew] = await Promise.allSettled([this.#dropRecord(part, entryId).then(() => decide(part))]);
    return anew;
  }

  #dropRecord({ tag, request }: Part, entryId: string): Promise<boolean> {
    return this.#records.drop(request.id!, tag, { entryId, attempt: "" });
  }

  /** The parts' outcomes as one reply. Nothing may stay charged for a request that was refused, or that cannot be decided. */
  async #settle(
    parts: readonly Part[],
    { settled, endsAtMonotonicMs, conflict, placeless }: Settling,
  ): Promise<StoreReply> {
    const failure = conflict ?? failureOf(settled) ?? placeless;
    const replies = settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    if (failure !== undefined) {
      // The failure policy will answer, or the caller learns that the id is another request's.
      const answered = parts.filter((_, i) => settled[i]!.status === "fulfilled");
      if (conflict !== undefined) await this.#forgetUncharged(answered, replies);
      await this.#undo(
        answered.flatMap((part, i) => undoOf(part, replies[i]!)),
        endsAtMonotonicMs,
      );
      throw failure;
    }
    if (parts.length === 1) return replies[0]!;
    const { reply, undos } = joinReplies(parts, replies);
    await this.#undo(undos, endsAtMonotonicMs);
    return reply;
  }

  /** A part that was decided under an id of another request leaves no record of it: one that charged goes with its charge. */
  async #forgetUncharged(parts: readonly Part[], replies: readonly StoreReply[]): Promise<void> {
    const uncharged = parts.filter((_, p) => {
      const { repeated, verdicts } = replies[p]!;
      return repeated === undefined && !verdicts.some(({ charged }) => charged);
    });
    await Promise.allSettled(uncharged.map((part) => this.#dropRecord(part, part.request.entryId)));
  }

  /** Waits for the undos no longer than the check may take: the others arrive later. */
  async #undo(undos: readonly Undo[], endsAtMonotonicMs: number): Promise<void> {
    if (undos.length === 0) return;
    const done = Promise.all(undos.map((undo) => this.#compensation.undo(undo)));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, endsAtMonotonicMs - performance.now()));
      done.finally(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /**
   * Redis runs no script of several keys while some of them are on another node. One key at a time it does, there or here; so
   * nothing goes uncounted while slots move. The atomic look at the id is given up: of two requests with one id that
   * arrive at the same time, both are charged, and the later one is undone.
   */
  async #decideKeyByKey(tag: string, request: StoreRequest, endsAtMonotonicMs: number): Promise<StoreReply> {
    const seen = await this.#records.see(request, tag, endsAtMonotonicMs);
    if (seen !== undefined) return seen;
    const reply = await this.#blocks.around(request, endsAtMonotonicMs, async (unblocked) => {
      const parts = splitByKey(unblocked);
      const settled = await Promise.allSettled(parts.map((part) => this.#decideApart(part, endsAtMonotonicMs)));
      return await this.#settle(parts, { settled, endsAtMonotonicMs });
    });
    const whole: Part = { tag, places: [], request: { ...request, id: undefined } };
    if (request.id === undefined || !request.charge) {
      await this.#putHold(whole, reply, endsAtMonotonicMs);
      return reply;
    }
    try {
      await this.#holds.put(tag, request, reply, endsAtMonotonicMs);
      if (await this.#records.put(request, tag, reply, endsAtMonotonicMs)) return reply;
    } catch (error) {
      // No refund by id could find the charge.
      await this.#undo(undoOf(whole, reply), endsAtMonotonicMs);
      throw error;
    }
    await this.#undo(undoOf(whole, reply), endsAtMonotonicMs);
    return (await this.#records.see(request, tag, endsAtMonotonicMs)) ?? reply;
  }

  /** One key of a slot on the move. */
  async #decideApart(part: Part, endsAtMonotonicMs: number): Promise<StoreReply> {
    const { request, heldElsewhere: key } = part;
    if (key === undefined) return await this.#node.decideApart(request, endsAtMonotonicMs);
    const held = await heldElsewhere(this.#calls, key, endsAtMonotonicMs);
    const reply = await this.#node.decideApart(request, endsAtMonotonicMs);
    try {
      const { changes } = await heldElsewhere(this.#calls, key, endsAtMonotonicMs);
      if (changes !== held.changes) throw new GrantsChanged();
    } catch (error) {
      await this.#undo(undoOf(part, reply), endsAtMonotonicMs);
      throw error;
    }
    const found = besideHeld(part, reply, held);
    await this.#undo(found.undos, endsAtMonotonicMs);
    return found.reply;
  }

  /** Units that are held without a hold could not be settled: then nothing stays charged. */
  async #putHold(whole: Part, reply: StoreReply, endsAtMonotonicMs: number): Promise<void> {
    try {
      await this.#holds.put(whole.tag, whole.request, reply, endsAtMonotonicMs);
    } catch (error) {
      await this.#undo(undoOf(whole, reply), endsAtMonotonicMs);
      throw error;
    }
  }
}

function onlyPart(request: StoreRequest): Part {
  return { tag: hashTag(request.checks[0]!.key), request, places: ONLY };
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
