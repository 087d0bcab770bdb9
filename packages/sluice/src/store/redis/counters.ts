/**
 * The part of a store that a single node and a cluster share: reading and writing counters. `SingleNodeStore` sends each call as one
 * script; `ClusterStore` splits calls by slot and sends the parts through a `SingleNodeStore`.
 */
import type { Check } from "../../check.js";
import type { Amounts, ExtendReply, ReservationState, Reserved, SettleReply } from "../reserved.js";
import type { LeaseRequest, MadeAt, RefundRequest, StoreReply, StoreRequest } from "../store.js";
import type { StoreStats } from "../store-stats.js";

export interface Counters {
  decide(request: StoreRequest): Promise<StoreReply>;
  recall(id: string): Promise<StoreReply | undefined>;
  refund(request: RefundRequest, madeAt?: MadeAt): Promise<boolean>;
  giveBack(checks: readonly Check[], madeAt?: MadeAt): Promise<boolean>;
  release(lease: LeaseRequest, madeAt?: MadeAt): Promise<boolean>;
  renew(lease: LeaseRequest, madeAt?: MadeAt): Promise<number>;
  settle(reserved: Reserved, amounts: Amounts, name: string): Promise<SettleReply>;
  extend(reserved: Reserved, amounts: Amounts): Promise<ExtendReply>;
  holdState(reserved: Reserved): Promise<ReservationState>;
  block(key: string, lengthMs: number, madeAt?: MadeAt): Promise<void>;
  inspect(checks: readonly Check[]): Promise<Record<string, number>[]>;
  reset(keys: readonly string[], madeAt?: MadeAt): Promise<void>;
  readonly undos: StoreStats["undos"];
  close(): Promise<void>;
}
