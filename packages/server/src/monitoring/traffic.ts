/**
 * Counts traffic on the path of every request: one listener, plain counts. Metrics, history and top keys read from it.
 * With monitoring off there is no listener, and all counts stay empty.
 */
import type { Limiter } from "sluice";
import { Comparisons } from "./candidate-comparison.js";
import { DecisionCounts } from "./decision-counts.js";
import { LeaseCounts } from "./lease-counts.js";
import { LoadReadings } from "./load/load-readings.js";
import { RefusalLog, type RefusalValues } from "./refusals/refusal-log.js";
import { RequestCounts } from "./request-counts.js";
import { SeenAttributes } from "./seen-attributes.js";
import { KeySpend } from "./spend/key-spend.js";
import { ModelSpend } from "./spend/model-spend.js";
import { TopKeys } from "./top-keys/top-keys.js";

export interface Traffic {
  readonly decisions: DecisionCounts;
  readonly requests: RequestCounts;
  readonly leases: LeaseCounts;
  readonly topKeys: TopKeys;
  readonly attributes: SeenAttributes;
  readonly load: LoadReadings;
  readonly spend: KeySpend;
  readonly models: ModelSpend;
  readonly refusals: RefusalLog;
  readonly isCounted: boolean;
}

interface TrafficOptions {
  readonly isCounted: boolean;
  /** For the refusal log. Default `shown`. */
  readonly refusalValues?: RefusalValues;
}

export function observeTraffic(limiter: Limiter, { isCounted, refusalValues = "shown" }: TrafficOptions): Traffic {
  const decisions = new DecisionCounts(new Comparisons(limiter));
  const attributes = new SeenAttributes();
  const leases = new LeaseCounts();
  const spend = new KeySpend(limiter);
  const keyAttributes = keyAttributesIn(limiter);
  const topKeys = new TopKeys(keyAttributes, spend);
  const refusals = new RefusalLog(keyAttributes, refusalValues);
  const models = new ModelSpend();
  const load = new LoadReadings(limiter);
  const requests = new RequestCounts();
  const traffic: Traffic = {
    decisions,
    requests,
    leases,
    topKeys,
    attributes,
    load,
    spend,
    models,
    refusals,
    isCounted,
  };
  if (!isCounted) return traffic;
  leases.watch(limiter);
  spend.watch(limiter);
  limiter.on("decision", (decision, request) => {
    decisions.add(decision);
    topKeys.add(decision, request);
    spend.add(decision, request);
    refusals.add(decision, request);
    attributes.add(request.attributes);
    if (decision.lease !== undefined) leases.granted(decision, request);
  });
  return traffic;
}

/** A rule's key attributes. Cached per rule: a look-up among ten thousand takes ten times as long as a check. */
function keyAttributesIn(limiter: Limiter): (rule: string) => readonly string[] {
  let { rules } = limiter;
  let found = new Map<string, readonly string[]>();
  return (id) => {
    if (rules !== limiter.rules) {
      rules = limiter.rules;
      found = new Map();
    }
    const known = found.get(id);
    if (known !== undefined) return known;
    const attributes = rules.find((rule) => rule.id === id)?.key ?? [];
    found.set(id, attributes);
    return attributes;
  };
}
