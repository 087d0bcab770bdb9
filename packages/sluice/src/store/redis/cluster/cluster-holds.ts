/**
 * Reservations whose counters live in different slots of a cluster: each slot has a hold of its own, and settles it in one script. A
 * settlement that reached only some of them is sent again: the others answer as before.
 *
 * An extension that one slot refuses leaves what other slots hold by then: it goes back when the reservation is settled.
 * While a slot is moving Redis runs scripts of one key: the hold is claimed first, and with it the right to change the counters, which
 * follow one by one. An extension waits until the slot has moved; until then its rules' `overrun` answers.
 */

import type { HoldRow } from "../../../algorithms/hold.js";
import { overrunName, rowsToRepay } from "../../../algorithms/hold.js";
import type { Check } from "../../../check.js";
import { hashTag, holdKey } from "../../../keys.js";
import {
  type Amounts,
  type ExtendReply,
  type HeldCounter,
  heldCounters,
  type ReservationState,
  type Reserved,
  type SettledCounter,
  type SettleReply,
} from "../../reserved.js";
import type { StoreReply, StoreRequest } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import { mayHaveRun } from "../failure.js";
import type { SingleNodeStore } from "../single-node-store.js";
import type { Compensation } from "./compensation.js";
import { type MovingSlots, slotIsMoving } from "./moving-slots.js";
import { groupByTag } from "./split-by-tag.js";

interface ClusterHoldsOptions {
  readonly calls: RedisCalls;
  readonly node: SingleNodeStore;
  readonly compensation: Compensation;
  readonly moving: MovingSlots;
}

/** One slot's counters, and where they stand in the whole reservation. */
interface Part {
  readonly tag: string;
  readonly reserved: Reserved;
  readonly places: readonly number[];
}

interface Repayment {
  readonly rows: readonly HoldRow[];
  /** Of the counter, in its part. */
  readonly place: number;
  readonly units: number;
  readonly ttlMs: number;
}

/** Of a charge beyond what was held, to a counter in a moving slot. */
const MOST_TRIES = 5;

export class ClusterHolds {
  readonly #options: ClusterHoldsOptions;

  constructor(options: ClusterHoldsOptions) {
    this.#options = options;
  }

  async settle(reserved: Reserved, amounts: Amounts): Promise<SettleReply> {
    const parts = partsOf(reserved);
    const replies = await allOrFailure(parts.map((part) => this.#settlePart(part, amounts)));
    const counters: SettledCounter[] = [];
    replies.forEach((reply, p) => {
      parts[p]!.places.forEach((place, i) => {
        counters[place] = reply.counters[i]!;
      });
    });
    return { counters, isNew: replies.some(({ isNew }) => isNew) };
  }

  async extend(reserved: Reserved, amounts: Amounts): Promise<ExtendReply> {
    const parts = partsOf(reserved);
    const replies = await allOrFailure(parts.map((part) => this.#options.node.extend(part.reserved, amounts)));
    const [{ nowMs }] = replies as [ExtendReply];
    const closed = replies.find(({ state }) => state !== "open");
    if (closed !== undefined) return closed;
    const verdicts: ExtendReply["verdicts"][number][] = [];
    const held: number[] = [];
    replies.forEach((reply, p) => {
      parts[p]!.places.forEach((place, i) => {
        verdicts[place] = reply.verdicts[i]!;
        held[place] = reply.held[i]!;
      });
    });
    return { nowMs, state: "open", verdicts, held };
  }

  holdState(reserved: Reserved): Promise<ReservationState> {
    return this.#options.node.holdState(partsOf(reserved)[0]!.reserved);
  }

  /** Writes the hold of a part that was decided key by key, if it passed. */
  async put(tag: string, request: StoreRequest, reply: StoreReply, endsAtMonotonicMs: number): Promise<void> {
    const { checks, entryId, holdMs } = request;
    const { verdicts, nowMs } = reply;
    if (holdMs === undefined || checks.some(({ plan }, i) => plan.mode === "enforce" && !verdicts[i]!.allowed)) return;
    const counters = heldCounters(checks, () => entryId);
    if (counters.length === 0) return;
    const units = checks.flatMap(({ held, cost }, i) => (held === undefined ? [] : [verdicts[i]!.charged ? cost : 0]));
    // Its keys were charged at times of their own: what a bucket lacked at this one is not known.
    const row: HoldRow = { entryId, atMs: nowMs, units, owed: units.map(() => 0) };
    await this.#options.node.holds.put({ ttlMs: holdMs, counters }, row, holdKey(entryId, tag), endsAtMonotonicMs);
  }

  #settlePart(part: Part, amounts: Amounts): Promise<SettleReply> {
    const { node, moving } = this.#options;
    if (moving.has(part.tag)) return this.#settleKeyByKey(part, amounts);
    return node.settle(part.reserved, amounts).catch((error: unknown) => {
      if (!slotIsMoving(error)) throw error;
      moving.add(part.tag);
      return this.#settleKeyByKey(part, amounts);
    });
  }

  async #settleKeyByKey({ tag, reserved }: Part, amounts: Amounts): Promise<SettleReply> {
    const { counters } = reserved;
    const key = holdKey(counters[0]!.entryId, tag);
    const { reply, rows } = await this.#options.node.holds.claim(reserved, amounts, key);
    if (!reply.isNew) return reply;
    await Promise.all(
      counters.map(async (counter, i) => {
        const { held, charged } = reply.counters[i]!;
        if (charged < held)
          await this.#giveBack(counter, { rows, place: i, units: held - charged, ttlMs: reserved.ttlMs });
        else if (charged > held) await this.#charge(counter, charged - held, rows);
      }),
    );
    return reply;
  }

  async #giveBack(counter: HeldCounter, { rows, place, units, ttlMs }: Repayment): Promise<void> {
    for (const { row, units: cost } of rowsToRepay({ rows }, place, units)) {
      const owed = row.owed[place]!;
      const charges = [{ check: checkOf(counter, cost), atMs: row.atMs, entryId: row.entryId, owed }];
      await this.#options.compensation.undo({ charges, id: undefined, attempt: "", lifeMs: ttlMs });
    }
  }

  async #charge(counter: HeldCounter, units: number, rows: readonly HoldRow[]): Promise<void> {
    const { calls, node } = this.#options;
    const request: StoreRequest = {
      checks: [{ ...checkOf(counter, units), charge: true }],
      charge: true,
      entryId: overrunName(rows),
      id: undefined,
      fingerprint: "",
      rulesVersion: 0,
    };
    for (let tries = 1; ; tries++) {
      try {
        await node.decideApart(request, calls.endOf());
        return;
      } catch (error) {
        // Where it may have been counted, counting it again would be worse.
        if (tries === MOST_TRIES || mayHaveRun(error)) return;
      }
    }
  }
}

function partsOf({ ttlMs, counters }: Reserved): Part[] {
  const groups = groupByTag([...counters.keys()], (i) => counters[i]!.key);
  return groups.map((places) => ({
    tag: hashTag(counters[places[0]!]!.key),
    places,
    reserved: { ttlMs, counters: places.map((i) => counters[i]!) },
  }));
}

/** Waits for all, so that what failed is the only thing left to do. */
async function allOrFailure<T>(calls: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((outcome) => {
    if (outcome.status === "rejected") throw outcome.reason;
    return outcome.value;
  });
}

function checkOf({ rule, mode, policy, key }: HeldCounter, cost: number): Check {
  const plan = {
    rule,
    mode,
    variant: undefined,
    policy,
    keyEnd: "",
    onStoreFailure: "deny",
    prefetchMs: 0,
    regionTermMs: 0,
    maxWaitMs: 0,
  } as const;
  return { plan, key, cost, live: -1 };
}
