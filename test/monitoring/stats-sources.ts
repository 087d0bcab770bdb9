/** What figures are read from, for tests that have a history and nothing else. */
import type { History } from "../../packages/server/src/monitoring/history/history.js";
import type { StatsSources } from "../../packages/server/src/monitoring/read-stats.js";

export function sourcesOf(history: History, more: Partial<StatsSources> = {}): StatsSources {
  return {
    history,
    own: undefined,
    storeKind: "memory",
    rules: () => [],
    rulesVersion: () => 1,
    presence: () => ({ atMs: Date.now(), rulesVersion: 1, eventLoopUtilisation: 0, store: "up" }),
    outage: () => undefined,
    alertsFiring: () => 0,
    ...more,
  };
}
