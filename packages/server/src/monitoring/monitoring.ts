/**
 * Monitoring, put together: the recorder that writes the history, and what the admin API reads from it.
 */
import type { Limiter } from "sluice";
import type { Log } from "../log.js";
import type { History } from "./history/history.js";
import { LiveFeed } from "./live-feed.js";
import { readAttributes, type SeenNames } from "./read-attributes.js";
import { readLive, readStats, type StatsSources } from "./read-stats.js";
import { startRecorder } from "./recorder.js";
import { singleFlight } from "./single-flight.js";
import type { StoreOutage } from "./store-outage.js";
import { type TopKeysQuery, TopKeysReader } from "./top-keys/read-top-keys.js";
import type { Traffic } from "./traffic.js";
import type { StatsSpan, StatsView, TopKeysView } from "./views.js";

export interface Monitoring {
  /** Where the history cannot be reached, the instance tells what it counted itself. */
  readStats(asked: { window: StatsSpan; rule?: string | undefined }): Promise<StatsView>;
  readTopKeys(query: TopKeysQuery): Promise<TopKeysView>;
  /** The names of attributes that requests had. */
  readAttributes(): Promise<SeenNames>;
  readonly live: LiveFeed;
  endStreams(): void;
  /** Writes what was not written yet. */
  close(): Promise<void>;
}

export interface MonitoringOptions {
  readonly limiter: Limiter;
  readonly traffic: Traffic;
  readonly history: History;
  /** In memory, for when the other cannot be reached; absent where it is in memory itself. */
  readonly own?: History | undefined;
  readonly outage: StoreOutage;
  readonly log: Log;
  readonly storeKind: string;
  alertsFiring(): number;
}

/** A day of a thousand rules is a hundred thousand texts to read, from the Redis that decides. */
const STATS_FOR_MS = 1_000;
const ATTRIBUTES_FOR_MS = 2_000;

export function startMonitoring(options: MonitoringOptions): Monitoring {
  const { limiter, history, own, outage, storeKind, traffic } = options;
  const recorder = startRecorder({ ...options, own });
  const sources: StatsSources = {
    history,
    own,
    outage: () => outage.view(),
    storeKind,
    presence: () => recorder.presence(),
    rules: () => limiter.rules,
    rulesVersion: () => limiter.rulesVersion,
    alertsFiring: options.alertsFiring,
  };
  const topKeys = new TopKeysReader(history, traffic.topKeys);
  const live = new LiveFeed(() => readLive(sources));
  const statsOfAll = {
    live: singleFlight(STATS_FOR_MS, () => readStats(sources, { window: "live" })),
    hour: singleFlight(STATS_FOR_MS, () => readStats(sources, { window: "hour" })),
    day: singleFlight(STATS_FOR_MS, () => readStats(sources, { window: "day" })),
  };
  return {
    readStats: (asked) => (asked.rule === undefined ? statsOfAll[asked.window]() : readStats(sources, asked)),
    readTopKeys: (query) => topKeys.read(query),
    readAttributes: singleFlight(ATTRIBUTES_FOR_MS, () => readAttributes(history, traffic.attributes)),
    live,
    endStreams: () => live.close(),
    async close() {
      live.close();
      await recorder.close();
    },
  };
}
