/**
 * Monitoring, put together: the recorder that writes the history, and what the admin API reads from it.
 */
import type { Limiter } from "sluice";
import type { Log } from "../log.js";
import type { History } from "./history/history.js";
import { keptFor } from "./kept-for.js";
import { LiveFeed } from "./live-feed.js";
import { readLive, readStats, type StatsSources } from "./read-stats.js";
import { startRecorder } from "./recorder.js";
import { type TopKeysQuery, TopKeysReader } from "./top-keys/read-top-keys.js";
import type { Traffic } from "./traffic.js";
import type { StatsView, StatsWindow, TopKeysView } from "./views.js";

export interface Monitoring {
  /** Reads reject where the history cannot be reached. */
  readStats(asked: { window: StatsWindow; rule?: string | undefined }): Promise<StatsView>;
  readTopKeys(query: TopKeysQuery): Promise<TopKeysView>;
  readonly live: LiveFeed;
  endStreams(): void;
  /** Writes what was not written yet. */
  close(): Promise<void>;
}

export interface MonitoringOptions {
  readonly limiter: Limiter;
  readonly traffic: Traffic;
  readonly history: History;
  readonly log: Log;
  readonly storeKind: string;
  alertsFiring(): number;
}

/** A day of a thousand rules is a hundred thousand texts to read, from the Redis that decides. */
const STATS_FOR_MS = 1_000;

export function startMonitoring(options: MonitoringOptions): Monitoring {
  const { limiter, history, storeKind } = options;
  const sources: StatsSources = {
    history,
    storeKind,
    rulesVersion: () => limiter.rulesVersion,
    alertsFiring: options.alertsFiring,
  };
  const recorder = startRecorder(options);
  const topKeys = new TopKeysReader(history);
  const live = new LiveFeed(() => readLive(sources));
  const statsOfAll = {
    hour: keptFor(STATS_FOR_MS, () => readStats(sources, { window: "hour" })),
    day: keptFor(STATS_FOR_MS, () => readStats(sources, { window: "day" })),
  };
  return {
    readStats: (asked) => (asked.rule === undefined ? statsOfAll[asked.window]() : readStats(sources, asked)),
    readTopKeys: (query) => topKeys.read(query),
    live,
    endStreams: () => live.close(),
    async close() {
      live.close();
      await recorder.close();
    },
  };
}
