/**
 * The decision about extending a reservation, made from the verdicts of its counters. Pure.
 */
import type { Check } from "../check.js";
import type { Extension } from "../reservations/reservations.js";
import type { StoreReply, StoreRequest } from "../store/store.js";
import { Decision } from "./decision.js";

/** The counters of a reservation no longer belong to a rule. */
const UNPLANNED = {
  variant: undefined,
  keyEnd: "",
  onStoreFailure: "deny",
  prefetchMs: 0,
  regionTermMs: 0,
  maxWaitMs: 0,
} as const;

export function extensionDecision(extension: Extension, rulesVersion: number): Decision {
  const { counters, verdicts, nowMs, reservation, degraded } = extension;
  const checks = counters.map(({ rule, mode, policy, key }): Check => {
    const plan = { ...UNPLANNED, rule, mode, policy } as const;
    return { plan, key, cost: 0, live: -1 };
  });
  const request: StoreRequest = { checks, charge: true, entryId: "", id: undefined, fingerprint: "", rulesVersion };
  const reply: StoreReply = { nowMs, verdicts, guarantee: "atomic" };
  const made = new Decision({ request, reply, charger: "nobody", lease: undefined, reservation, degraded });
  return made;
}
