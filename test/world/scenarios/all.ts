/** Every scenario, by its name. */
import type { LoadScenario, Scenario } from "../plan.js";
import { clocks } from "./clocks.js";
import { counting } from "./counting.js";
import { hours } from "./hours.js";
import { ids } from "./ids.js";
import { leases } from "./leases.js";
import { oneByOne } from "./one-by-one.js";
import { outages } from "./outages.js";
import { prefetch } from "./prefetch.js";
import { regions } from "./regions.js";
import { reservations } from "./reservations.js";
import { ruleChanges } from "./rule-changes.js";

export const scenarios: readonly (Scenario | LoadScenario)[] = [
  counting,
  ids,
  leases,
  outages,
  oneByOne,
  clocks,
  ruleChanges,
  hours,
  prefetch,
  reservations,
  regions,
];
