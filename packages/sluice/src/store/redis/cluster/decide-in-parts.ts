/**
 * Decides a request on a cluster: node by node (or slot by slot), in parallel; each part is all or nothing.
 *
 * The life of such a request: split by what one script reaches (`node-reach.ts`) -> each part is one script, with the record of the
 * request's id beside its counters -> if all passed, and the id's place is written: the reply; if one refused or failed: the charges of the
 * others are undone (`compensation.ts`), then the refusal or the error. If an older or newer version of the rules has already decided the
 * id, what was charged now is undone, and the reply is the first one. Parts in a migrating slot are decided by tag, then key by key.
 */
import { SluiceError } from "../../../errors.js";
import { hashTag } from "../../../keys.js";
import { isOthers } from "../../asked-counters.js";
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
import { joinReplies, type Part, refuses, splitByKey, splitByTag, undoOf } from "./split-by-tag.js";

/** The most by which the expiries of one request's records differ: clocks that run unevenly, parts that waited. */
const ENDS_APART_MS = 10_000;

/** A slot may start migrating again, each time between a fetch and its end: after this many attempts the failure policy answers. */
const MOST_ATTEMPTS = 4;

/** The index of a lone check. */
const ONLY = [0];

type Outcome = PromiseSettledResult<StoreReply>;

interface Settling {
  readonly settled: readonly Outcome[];
  readonly endsAtMonotonicMs: number;
  /** Set if the id was sent for another request. */
  readonly conflict?: unknown;
  /** Why a charge has no place under its id. */
  readonly placeless?: unknown;
}

/** The earlier answer to an id, and if it is a refusal, what this attempt must undo. */
interface Recalled {
  readonly reply: StoreReply;
  readonly undos: readonly Undo[];
  readonly isRefused: boolean;
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
    // Most requests have one check: a part is made only once it is needed.
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

  /** A record or a hold is written beside the counters, under a hash tag, so such a request is decided by tag. */
  #reachOf({ id, holdMs }: StoreRequest): (key: string) => string {
    return id === undefined && holdMs === undefined ? this.#reach.of : hashTag;
  }

  #decideAll(request: StoreRequest, parts: readonly Part[], endsAtMonotonicMs: number): Promise<StoreReply> {
    const [only] = parts;
    if (parts.length > 1 || request.id !== undefined) return this.#decideInParts(request, parts, endsAtMonotonicMs);
    return this.#decidePart(only!, endsAtMonotonicMs);
  }

  /** Decides checks that one script reaches in one script; while a slot is being migrated, by tag or key by key. */
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

  /** Over several slots of one node; by tag if the node does not accept them together. */
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
      Promise.allSettled([this.#places.take(request, parts)]),
      Promise.allSettled(parts.map(decide)),
    ]);
    const conflict = conflictOf(place, parts, settled);
    if (conflict === undefined && place.status === "fulfilled" && place.value !== undefined)
      return await this.#settleBeside(request, parts, { settled, endsAtMonotonicMs, tags: place.value });
    const stale = parts.length > 1 ? stalePlaces(settled) : [];
    for (const p of stale) settled[p] = await this.#decideAnew(parts[p]!, settled[p]!, decide);
    // A charge without a place could not be refunded by its id. A refusal needs no place.
    const placeless = place.status === "rejected" && settled.some(hasCharged) ? place.reason : undefined;
    return await this.#settle(parts, { settled, endsAtMonotonicMs, conflict, placeless });
  }

  /**
   * An older or newer version of the rules was asked with this id, and its records lie under `tags`. They are the answer if all of them are
   * there, or one of them refuses. Otherwise that decision was given back or is still in flight, and this one stands.
   */
  async #settleBeside(
    request: StoreRequest,
    parts: readonly Part[],
    { settled, endsAtMonotonicMs, tags }: Pick<Settling, "settled" | "endsAtMonotonicMs"> & { tags: readonly string[] },
  ): Promise<StoreReply> {
    // If this attempt is the first under one of those tags, the record there is its own.
    const own = parts.filter((_, p) => settled[p]!.status === "fulfilled" && !replyOf(settled[p]!).repeated);
    const others = { tags, except: own.map(({ tag }) => tag) };
    const [first] = await Promise.allSettled([this.#recall(request, others, endsAtMonotonicMs)]);
    if (first.status === "fulfilled" && first.value !== undefined) {
      const { reply, undos, isRefused } = first.value;
      await this.#undo(undos, endsAtMonotonicMs);
      // What was found under those tags also stands for this attempt, unless the answer is a refusal.
      const stands = ({ tag }: Part): boolean => tags.includes(tag) && !isRefused;
      const places = [...parts.keys()].filter((p) => settled[p]!.status === "fulfilled" && !stands(parts[p]!));
      const back = { parts: places.map((p) => parts[p]!), replies: places.map((p) => replyOf(settled[p]!)) };
      await this.#takeBack(back.parts, back.replies, endsAtMonotonicMs);
      return reply;
    }
    const [place] = await Promise.allSettled([request.charge ? this.#places.replace(request, parts) : undefined]);
    const lost = [first, place].find(({ status }) => status === "rejected") as PromiseRejectedResult | undefined;
    return await this.#settle(parts, { settled, endsAtMonotonicMs, placeless: lost?.reason });
  }

  /** The earlier answer to an id under these tags. Its charges then also stand for this attempt. */
  async #recall(
    request: StoreRequest,
    { tags, except }: { tags: readonly string[]; except: readonly string[] },
    endsAtMonotonicMs: number,
  ): Promise<Recalled | undefined> {
    const see = async (tag: string): Promise<StoreReply | undefined> =>
      except.includes(tag) ? undefined : await this.#records.see(request, tag, endsAtMonotonicMs);
    const found = await Promise.all(tags.map(see));
    const parts: Part[] = [];
    const replies: StoreReply[] = [];
    let count = 0;
    found.forEach((reply, t) => {
      if (reply?.repeated === undefined) return;
      const { checks } = reply.repeated;
      const places = checks.map((_, i) => count + i);
      count += checks.length;
      parts.push({ tag: tags[t]!, request: { ...request, checks }, places });
      replies.push(reply);
    });
    const isRefused = parts.some(({ request: { checks } }, p) =>
      checks.some((check, i) => refuses(check, replies[p]!.verdicts[i]!)),
    );
    if (parts.length === 0 || (parts.length < tags.length && !isRefused)) return undefined;
    if (parts.length === 1) return { reply: replies[0]!, undos: [], isRefused };
    return { ...joinReplies(parts, replies), isRefused };
  }

  /** Drops the record of an id in one part, but not its charge, and decides the part again. */
  async #decideAnew(
    part: Part,
    outcome: PromiseSettledResult<StoreReply>,
    decide: (part: Part) => Promise<StoreReply>,
  ): Promise<PromiseSettledResult<StoreReply>> {
    const { entryId } = replyOf(outcome).repeated!;
    const [anew] = await Promise.allSettled([this.#dropRecord(part, entryId).then(() => decide(part))]);
    return anew;
  }

  #dropRecord({ tag, request }: Part, entryId: string): Promise<boolean> {
    return this.#records.drop(request.id!, tag, { entryId, attempt: "" });
  }

  /** Joins the parts' outcomes into one reply. A request that was refused, or cannot be decided, must leave no charge. */
  async #settle(
    parts: readonly Part[],
    { settled, endsAtMonotonicMs, conflict, placeless }: Settling,
  ): Promise<StoreReply> {
    const failure = conflict ?? failureOf(settled) ?? placeless;
    const replies = settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    if (failure !== undefined) {
      // Either the failure policy will answer, or the caller learns that the id belongs to another request.
      const answered = parts.filter((_, i) => settled[i]!.status === "fulfilled");
      if (conflict !== undefined) await this.#takeBack(answered, replies, endsAtMonotonicMs);
      else await this.#undoAll(answered, replies, endsAtMonotonicMs);
      throw failure;
    }
    if (parts.length === 1) return replies[0]!;
    const { reply, undos } = joinReplies(parts, replies);
    await this.#undo(undos, endsAtMonotonicMs);
    return reply;
  }

  #undoAll(parts: readonly Part[], replies: readonly StoreReply[], endsAtMonotonicMs: number): Promise<void> {
    return this.#undo(
      parts.flatMap((part, i) => undoOf(part, replies[i]!)),
      endsAtMonotonicMs,
    );
  }

  /** The same for parts decided under an id that stands for another decision: they must not leave a record either. */
  async #takeBack(parts: readonly Part[], replies: readonly StoreReply[], endsAtMonotonicMs: number): Promise<void> {
    await this.#forgetUncharged(parts, replies);
    await this.#undoAll(parts, replies, endsAtMonotonicMs);
  }

  /** Records of parts that did charge are removed together with their charges. */
  async #forgetUncharged(parts: readonly Part[], replies: readonly StoreReply[]): Promise<void> {
    const uncharged = parts.filter((_, p) => {
      const { repeated, verdicts } = replies[p]!;
      return repeated === undefined && !verdicts.some(({ charged }) => charged);
    });
    await Promise.allSettled(uncharged.map((part) => this.#dropRecord(part, part.request.entryId)));
  }

  /** Waits for the undos no longer than the check's deadline; the rest finish later. */
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
   * Redis does not run a script with several keys while some of them are on another node. It does run one key at a time, on either node, so
   * nothing goes uncounted while slots migrate. What is lost is the atomic lookup of the id: of two concurrent requests with one id, both
   * are charged, and the later one is undone.
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
      // A refund by id could not find the charge.
      await this.#undo(undoOf(whole, reply), endsAtMonotonicMs);
      throw error;
    }
    await this.#undo(undoOf(whole, reply), endsAtMonotonicMs);
    return (await this.#records.see(request, tag, endsAtMonotonicMs)) ?? reply;
  }

  /** One key in a migrating slot. */
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

  /** Held units without a hold could never be settled, so nothing may stay charged. */
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

function replyOf(outcome: Outcome): StoreReply {
  return (outcome as PromiseFulfilledResult<StoreReply>).value;
}

/** An error if the id belongs to another request, judging by its place, or by a record that other rules left under the same tag. */
function conflictOf(
  place: PromiseSettledResult<unknown>,
  parts: readonly Part[],
  settled: readonly Outcome[],
): unknown {
  if (place.status === "rejected" && isMistake(place.reason)) return place.reason;
  const isTaken = settled.some((outcome, p) => {
    const first = outcome.status === "fulfilled" ? outcome.value.repeated : undefined;
    return first !== undefined && isOthers(parts[p]!.request, first);
  });
  return isTaken ? otherRequest() : undefined;
}

function isMistake(reason: unknown): boolean {
  return reason instanceof SluiceError && reason.code === "invalid-request";
}

function hasCharged(outcome: Outcome): boolean {
  return outcome.status === "fulfilled" && outcome.value.verdicts.some(({ charged }) => charged);
}

/**
 * Why a request cannot be answered, if it cannot. An id that was sent for another request takes precedence over failures of other parts.
 */
function failureOf(settled: readonly Outcome[]): unknown {
  const reasons = settled.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  return reasons.find(isMistake) ?? reasons[0];
}

/**
 * The parts of a request that must not answer for an earlier one: other parts were decided anew, and these records are so old that the
 * records of those parts may have expired. Otherwise a retry timed this way would be charged under some of its rules only.
 */
function stalePlaces(settled: readonly Outcome[]): number[] {
  const replies = settled.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : undefined));
  if (!replies.some((reply) => reply !== undefined && reply.repeated === undefined)) return [];
  return [...replies.keys()].filter((p) => {
    const { repeated, nowMs = 0 } = replies[p] ?? {};
    return repeated !== undefined && repeated.atMs - nowMs > REMEMBER_MS - ENDS_APART_MS;
  });
}
