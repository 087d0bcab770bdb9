/**
 * What is counted of the traffic, on the path of every request: one listener, plain counts. Metrics, history and top keys are read from it.
 */
import type { Limiter } from "sluice";
import { DecisionCounts } from "./decision-counts.js";
import { LeaseCounts } from "./lease-counts.js";
import { RequestCounts } from "./request-counts.js";
import { TopKeys } from "./top-keys/top-keys.js";

export interface Traffic {
  readonly decisions: DecisionCounts;
  readonly requests: RequestCounts;
  readonly leases: LeaseCounts;
  /** Absent where monitoring is off. */
  readonly topKeys: TopKeys | undefined;
}

export function observeTraffic(limiter: Limiter, { withKeys }: { withKeys: boolean }): Traffic {
  const decisions = new DecisionCounts();
  const leases = new LeaseCounts();
  leases.watch(limiter);
  const keyAttributes = (id: string): readonly string[] => limiter.rules.find((rule) => rule.id === id)?.key ?? [];
  const topKeys = withKeys ? new TopKeys(keyAttributes) : undefined;
  limiter.on("decision", (decision, request) => {
    decisions.add(decision);
    topKeys?.add(decision, request);
    if (decision.lease !== undefined) leases.granted(decision, request);
  });
  return { decisions, requests: new RequestCounts(), leases, topKeys };
}
