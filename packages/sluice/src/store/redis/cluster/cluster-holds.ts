/**
 * Reservations whose counters live in different slots of a cluster: each slot has its own hold and settles it in one script. A settlement
 * that reached only some slots is sent again: the others answer as before.
 *
 * If one slot refuses an extension, other slots may already hold more: that goes back when the reservation is settled. While a slot is
 * being migrated, Redis only runs scripts with one key: the hold is claimed first, and with it the right to change the counters, which
 * follow one by one. An extension has to wait until the migration is over; until then the `overrun` of its rules answers.
 */

import type { HoldRow } from "../../../algorithms/hold.js";
import { overrunName, rowsToRepay } from "../../../algorithms/hold.js";
import type { Check } from "../../../check.js";
import { hashTag, holdKey } from "../../../keys.js";
import {
  type Amounts,
  chargingPolicy,
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
import type { NamedAmounts } from "../holds.js";
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

/** One slot's counters, and their indices in the whole reservation. */
interface Part {
  readonly tag: string;
  readonly reserved: Reserved;
  readonly places: readonly number[];
}

interface Repayment {
  readonly rows: readonly HoldRow[];
  /** Index of the counter in its part. */
  readonly place: number;
  readonly units: number;
  readonly ttlMs: number;
}

/** Attempts to charge what exceeds the hold to a counter in a migrating slot. */
const MOST_TRIES = 5;

export class ClusterHolds {
  readonly #options: ClusterHoldsOptions;

  constructor(options: ClusterHoldsOptions) {
    this.#options = options;
  }

  async settle(reserved: Reserved, settlement: NamedAmounts): Promise<SettleReply> {
    const parts = partsOf(reserved);
    const replies = await allOrFailure(parts.map((part) => this.#settlePart(part, settlement)));
    const counters: SettledCounter[] = [];
    replies.forEach((reply, p) => {
      parts[p]!.places.forEach((place, i) => {
        counters[place] = reply.counters[i]!;
      });
    });
    // Concurrent settlements may each have been first in a different slot: the one that was first in the first slot counts.
    const [{ isOwn }] = replies as [SettleReply];
    return { counters, isNew: replies.some(({ isNew }) => isNew), isOwn };
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

  /** Writes the hold of a part that was decided key by key and passed. */
  async put(tag: string, request: StoreRequest, reply: StoreReply, endsAtMonotonicMs: number): Promise<void> {
    const { checks, entryId, holdMs } = request;
    const { verdicts } = reply;
    if (holdMs === undefined || checks.some(({ plan }, i) => plan.mode === "enforce" && !verdicts[i]!.allowed)) return;
    const counters = heldCounters(checks, () => entryId);
    if (counters.length === 0) return;
    const rows = rowsByTime(request, reply);
    await this.#options.node.holds.put({ ttlMs: holdMs, counters }, rows, holdKey(entryId, tag), endsAtMonotonicMs);
  }

  #settlePart(part: Part, settlement: NamedAmounts): Promise<SettleReply> {
    const { node, moving } = this.#options;
    if (moving.has(part.tag)) return this.#settleKeyByKey(part, settlement);
    return node.settle(part.reserved, settlement.amounts, settlement.name).catch((error: unknown) => {
      if (!slotIsMoving(error)) throw error;
      moving.add(part.tag);
      return this.#settleKeyByKey(part, settlement);
    });
  }

  async #settleKeyByKey({ tag, reserved }: Part, settlement: NamedAmounts): Promise<SettleReply> {
    const { counters } = reserved;
    const key = holdKey(counters[0]!.entryId, tag);
    const { reply, rows } = await this.#options.node.holds.claim(reserved, settlement, key);
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
      checks: [{ ...checkOf({ ...counter, policy: chargingPolicy(counter) }, units), charge: true }],
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
        // If it may have been counted, counting it again would be worse.
        if (tries === MOST_TRIES || mayHaveRun(error)) return;
      }
    }
  }
}

/**
 * The rows of a request whose keys were charged at different times, one row per time: a rolling window finds the units to give back by when
 * they were charged.
 */
function rowsByTime({ checks, entryId }: StoreRequest, { verdicts, nowMs, timesMs }: StoreReply): HoldRow[] {
  const charged = checks.flatMap(({ held, cost }, i) => {
    if (held === undefined) return [];
    return [{ units: verdicts[i]!.charged ? cost : 0, atMs: timesMs?.[i] ?? nowMs }];
  });
  // How much a bucket lacked at that time is not known.
  const owed = charged.map(() => 0);
  return [...new Set(charged.map(({ atMs }) => atMs))].map((atMs) => {
    const units = charged.map((one) => (one.atMs === atMs ? one.units : 0));
    return { entryId, atMs, units, owed };
  });
}

function partsOf({ ttlMs, counters }: Reserved): Part[] {
  const groups = groupByTag([...counters.keys()], (i) => counters[i]!.key);
  return groups.map((places) => ({
    tag: hashTag(counters[places[0]!]!.key),
    places,
    reserved: { ttlMs, counters: places.map((i) => counters[i]!) },
  }));
}

/** Waits for all calls, so that a retry only has to repeat what failed. */
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
