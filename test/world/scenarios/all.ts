/** Every scenario, by its name. */
import type { Scenario } from "../plan.js";
import { clocks } from "./clocks.js";
import { counting } from "./counting.js";
import { hours } from "./hours.js";
import { ids } from "./ids.js";
import { leases } from "./leases.js";
import { outages } from "./outages.js";
import { prefetch } from "./prefetch.js";
import { ruleChanges } from "./rule-changes.js";

export const scenarios: readonly Scenario[] = [counting, ids, leases, outages, clocks, ruleChanges, hours, prefetch];
