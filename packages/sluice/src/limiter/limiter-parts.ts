/**
 * The parts of a limiter, made from its options and wired together. In: the options, which are validated here. Out: the parts, with the
 * first rules in force; malformed options and rules throw. Runs once per limiter: no check passes through here.
 */
import { Prefetch } from "../prefetch/prefetch.js";
import { refuseGlobal, regionalStoreOf } from "../regions/region-options.js";
import type { RegionalStore } from "../regions/regional-store.js";
import { Reservations } from "../reservations/reservations.js";
import type { Rule } from "../rules/rule.js";
import { LoadShedder } from "../shedding/load-shedder.js";
import { LoopLateness } from "../shedding/loop-lateness.js";
import type { SoleDecider } from "../sole-request.js";
import { MemoryStore } from "../store/memory/memory-store.js";
import type { Store } from "../store/store.js";
import { AdaptSignals } from "./adapt-signals.js";
import { AdaptiveLimits } from "./adaptive-limits.js";
import { newLeaseId } from "./entry-id.js";
import { FailurePolicy } from "./failure-policy.js";
import { InstanceShare } from "./instance-share.js";
import { Leases } from "./leases.js";
import { LimiterEmitter } from "./limiter-events.js";
import { checkOptions, DEFAULT_MAX_WAITING, type LimiterOptions } from "./limiter-options.js";
import { Outage } from "./outage.js";
import { Refunds } from "./refunds.js";
import { RulesInForce } from "./rules-in-force.js";
import { SharedReports } from "./shared-reports.js";
import { Waits } from "./waits.js";

export interface LimiterParts {
  readonly store: Store;
  /** Set if rules may be global. */
  readonly regional: RegionalStore | undefined;
  /** Where the failure policy `local` counts. */
  readonly local: MemoryStore;
  readonly rules: RulesInForce;
  /** Absent if the store is in this process: every check is then as cheap as one decided on prefetched units. */
  readonly prefetch: Prefetch | undefined;
  /** Decides single-check requests in process: the memory store, or prefetched units. Absent if something wraps them. */
  readonly soleDecider: SoleDecider | undefined;
  readonly share: InstanceShare;
  readonly failurePolicy: FailurePolicy;
  readonly outage: Outage;
  readonly shedder: LoadShedder;
  readonly reports: SharedReports;
  readonly adaptive: AdaptiveLimits;
  readonly leases: Leases;
  readonly reservations: Reservations;
  readonly refunds: Refunds;
  readonly waits: Waits;
  readonly events: LimiterEmitter;
}

/** For the counters of the failure policy `local`, which exist only during an outage: room for about 250 000. */
const LOCAL_BYTES = 64 * 2 ** 20;

export function limiterParts(options: LimiterOptions): LimiterParts {
  checkOptions(options);
  const { clock, rulesVersion: version = 1 } = options;
  const nowMonotonicMs = (): number => performance.now();
  const virtualNow = clock && (() => clock.now());
  const now = virtualNow ?? nowMonotonicMs;
  const regionStore: Store = options.store ?? new MemoryStore(clock === undefined ? {} : { clock });
  const regional = regionalStoreOf(options, regionStore, (rule) => rules?.book.find(rule)?.scope === "global");
  const store: Store = regional ?? regionStore;
  const local = new MemoryStore({ maxBytes: LOCAL_BYTES });
  const prefetch = store.isRemote === true ? new Prefetch(store) : undefined;
  const share = new InstanceShare(store, options.instances);
  const events = new LimiterEmitter();
  const loopLateness = new LoopLateness();
  const lateness = clock === undefined ? () => loopLateness.integral() : undefined;
  const shedder = new LoadShedder({ now, newId: newLeaseId, lateness });
  const reports = new SharedReports(store, shedder);
  const instance = newLeaseId();
  const signals = new AdaptSignals({ reports: shedder.reports, shared: reports, instance, now });
  const adaptive = new AdaptiveLimits({
    store,
    instance,
    now,
    utilisationOf: (signal) => signals.utilisationOf(signal),
    onMove: (move) => events.emit("limit", move),
  });
  let rules: RulesInForce | undefined;
  const onChange = (inForce: readonly Rule[], inForceVersion: number): void => {
    if (inForce.some(({ scope }) => scope === "global")) regional?.countRegions();
    share.countFor(inForce);
    reports.hearFor(inForce);
    // The constructor of `rules` already calls this, before `rules` is assigned.
    if (rules !== undefined) adaptive.follow(rules.book);
    events.emit("rules", inForce, inForceVersion);
  };
  const accept = regional === undefined ? refuseGlobal : undefined;
  const rulesInForce = new RulesInForce({ rules: options.rules, version, onChange, accept });
  rules = rulesInForce;
  adaptive.follow(rules.book);
  const failurePolicy = new FailurePolicy(
    local,
    ({ plan }) => share.instances * (plan.regionTermMs > 0 ? (regional?.regions ?? 1) : 1),
  );
  const reservations = new Reservations({
    store,
    local,
    policyNow: (counter) => rulesInForce.book.policyNow(counter),
    onSettled: (id, settlement) => events.emit("settled", id, settlement),
    onExpired: (id, held) => events.emit("expired", id, held),
  });
  const outage = new Outage({
    store,
    degraded: (cause) => events.emit("degraded", cause),
    recovered: () => events.emit("recovered"),
  });
  return {
    store,
    regional,
    local,
    rules,
    prefetch,
    soleDecider: soleDeciderOf(store, prefetch),
    share,
    failurePolicy,
    outage,
    shedder,
    reports,
    adaptive,
    leases: new Leases({ store, local, shedder, events }),
    reservations,
    refunds: new Refunds({ store, local, reservations }),
    waits: new Waits(options.maxWaiting ?? DEFAULT_MAX_WAITING, clock),
    events,
  };
}

/** A store that extends the memory store may decide differently, and a store with `namesRequests` must see every request. */
function soleDeciderOf(store: Store, prefetch: Prefetch | undefined): SoleDecider | undefined {
  if (Object.getPrototypeOf(store) === MemoryStore.prototype) return (store as MemoryStore).soleDecider;
  return store.namesRequests === true ? undefined : prefetch;
}
