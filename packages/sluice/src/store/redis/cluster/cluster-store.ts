/**
 * Counters on a cluster: splits each call by node or hash tag, sends the parts through a single-node store in parallel, and joins the
 * answers. A decision in several parts is compensated, not atomic: `decide-in-parts.ts`.
 */
import type { Check } from "../../../check.js";
import { hashTag } from "../../../keys.js";
import type { Amounts, ExtendReply, ReservationState, Reserved, SettleReply } from "../../reserved.js";
import type { LeaseRequest, MadeAt, RefundRequest, StoreReply, StoreRequest } from "../../store.js";
import type { StoreStats } from "../../store-stats.js";
import type { RedisCalls } from "../calls.js";
import type { Counters } from "../counters.js";
import { SingleNodeStore } from "../single-node-store.js";
import { ClusterHolds } from "./cluster-holds.js";
import { Compensation } from "./compensation.js";
import { PartsDecider } from "./decide-in-parts.js";
import { IdRecords } from "./id-records.js";
import { MovingSlots } from "./moving-slots.js";
import { NodeReach } from "./node-reach.js";
import { RequestPlaces } from "./request-places.js";
import { groupByTag, joinRecalled } from "./split-by-tag.js";

interface ClusterStoreOptions {
  /** The node of a key, as far as the client knows; "" if it does not. */
  readonly nodeOf: (key: string) => string;
  /** Called with the keys of counters that have more room now. */
  readonly onGivenBack: (keys: readonly string[]) => void;
  /** The same, for a settlement. */
  readonly onSettled: (keys: readonly string[]) => void;
}

export class ClusterStore implements Counters {
  readonly #node: SingleNodeStore;
  readonly #places: RequestPlaces;
  readonly #compensation: Compensation;
  readonly #holds: ClusterHolds;
  readonly #parts: PartsDecider;

  constructor(calls: RedisCalls, { nodeOf, onGivenBack, onSettled }: ClusterStoreOptions) {
    const moving = new MovingSlots();
    const reach = new NodeReach(nodeOf, moving);
    const node = new SingleNodeStore({ calls, onGivenBack, onSettled, reach, claimsRecords: true });
    const records = new IdRecords(calls);
    const places = new RequestPlaces(calls);
    const compensation = new Compensation({ node, records, moving });
    this.#node = node;
    this.#places = places;
    this.#compensation = compensation;
    const holds = new ClusterHolds({ calls, node, compensation, moving });
    this.#holds = holds;
    this.#parts = new PartsDecider({ calls, node, records, places, compensation, moving, reach, holds });
  }

  decide(request: StoreRequest): Promise<StoreReply> {
    return this.#parts.decide(request);
  }

  async recall(id: string): Promise<StoreReply | undefined> {
    const tags = await this.#places.tagsOf(id);
    const records = await Promise.all(tags.map((tag) => this.#node.recall(id, tag)));
    return joinRecalled(records.flatMap((reply) => reply ?? []));
  }

  async refund({ charges, id }: RefundRequest): Promise<boolean> {
    const groups = groupByTag(charges, ({ check }) => check.key);
    const settled = await Promise.allSettled(groups.map((group) => this.#compensation.refund({ charges: group, id })));
    const failed = settled.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const given = settled.some((outcome) => outcome.status === "fulfilled" && outcome.value);
    if (given && id !== undefined) {
      await this.#places.forget(
        id,
        charges.map(({ check }) => hashTag(check.key)),
      );
    }
    return given;
  }

  async giveBack(checks: readonly Check[], madeAt?: MadeAt): Promise<boolean> {
    const groups = groupByTag(checks, ({ key }) => key);
    const given = await Promise.all(groups.map((group) => this.#node.giveBack(group, madeAt)));
    return given.includes(true);
  }

  async release({ places }: LeaseRequest, madeAt?: MadeAt): Promise<boolean> {
    const groups = groupByTag(places, ({ key }) => key);
    const released = await Promise.all(groups.map((group) => this.#node.release({ places: group }, madeAt)));
    return released.includes(true);
  }

  /** A lease that lost its place in one slot is lost: its places in other slots are released. */
  async renew(lease: LeaseRequest, madeAt?: MadeAt): Promise<number> {
    const groups = groupByTag(lease.places, ({ key }) => key);
    const terms = await Promise.all(groups.map((group) => this.#node.renew({ places: group }, madeAt)));
    const shortestMs = Math.min(...terms);
    if (shortestMs === 0 && terms.length > 1) await this.release(lease);
    return shortestMs;
  }

  settle(reserved: Reserved, amounts: Amounts, name: string): Promise<SettleReply> {
    return this.#holds.settle(reserved, { amounts, name });
  }

  extend(reserved: Reserved, amounts: Amounts): Promise<ExtendReply> {
    return this.#holds.extend(reserved, amounts);
  }

  holdState(reserved: Reserved): Promise<ReservationState> {
    return this.#holds.holdState(reserved);
  }

  block(key: string, lengthMs: number, madeAt?: MadeAt): Promise<void> {
    return this.#node.block(key, lengthMs, madeAt);
  }

  async inspect(checks: readonly Check[]): Promise<Record<string, number>[]> {
    return (await Promise.all(checks.map((check) => this.#node.inspect([check])))).flat();
  }

  async reset(keys: readonly string[], madeAt?: MadeAt): Promise<void> {
    await Promise.all(keys.map((key) => this.#node.reset([key], madeAt)));
  }

  get undos(): StoreStats["undos"] {
    return this.#compensation.undos;
  }

  async close(): Promise<void> {
    await this.#compensation.close();
  }
}
