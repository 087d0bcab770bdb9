/**
 * The part of a store that a single node and a cluster share: it reads and writes counters. `SingleNodeStore` sends each call
 * as one script; `ClusterStore` splits calls by slot and sends the parts through a `SingleNodeStore`.
 */
import type { Check } from "../../check.js";
import type { Amounts, ExtendReply, ReservationState, Reserved, SettleReply } from "../reserved.js";
import type { LeaseRequest, RefundRequest, StoreReply, StoreRequest } from "../store.js";
import type { StoreStats } from "../store-stats.js";

export interface Counters {
  decide(request: StoreRequest): Promise<StoreReply>;
  recall(id: string): Promise<StoreReply | undefined>;
  refund(request: RefundRequest): Promise<boolean>;
  giveBack(checks: readonly Check[]): Promise<boolean>;
  release(lease: LeaseRequest): Promise<boolean>;
  renew(lease: LeaseRequest): Promise<number>;
  settle(reserved: Reserved, amounts: Amounts): Promise<SettleReply>;
  extend(reserved: Reserved, amounts: Amounts): Promise<ExtendReply>;
  holdState(reserved: Reserved): Promise<ReservationState>;
  block(key: string, lengthMs: number): Promise<void>;
  inspect(checks: readonly Check[]): Promise<Record<string, number>[]>;
  reset(keys: readonly string[]): Promise<void>;
  readonly undos: StoreStats["undos"];
  close(): Promise<void>;
}
