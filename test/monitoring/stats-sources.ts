/** What figures are read from, for tests that have a history and nothing else. */
import type { InstanceReport } from "../../packages/server/src/instance/heartbeat.js";
import type { History } from "../../packages/server/src/monitoring/history/history.js";
import type { StatsSources } from "../../packages/server/src/monitoring/read-window.js";

const report = (atMs: number): InstanceReport => ({
  instance: "one",
  atMs,
  store: "up",
  eventLoopUtilisation: 0,
  rulesVersion: 1,
  versionSinceMs: atMs,
  rulesLoaded: true,
});

export function sourcesOf(history: History, more: Partial<StatsSources> = {}): StatsSources {
  return {
    history,
    own: undefined,
    storeKind: "memory",
    rules: () => [],
    rulesVersion: () => 1,
    heartbeat: { report, readAll: async () => [] },
    outage: () => undefined,
    alertsFiring: () => 0,
    ...more,
  };
}
