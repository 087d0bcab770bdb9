/** The traffic figures: the recorder that writes them to the history, and the views that the admin API reads from it. */
import type { Attributes, Limiter } from "sluice";
import type { Heartbeat } from "../instance/heartbeat.js";
import type { SharedState } from "../instance/shared-state.js";
import type { StoreHealth } from "../instance/store-health.js";
import type { Log } from "../log.js";
import type { History } from "./history/history.js";
import { LiveFeed } from "./live-feed.js";
import { readLoad } from "./load/read-load.js";
import { SharedLoad } from "./load/shared-load.js";
import { readAttributes, type SeenNames } from "./read-attributes.js";
import { readLive, readStats } from "./read-stats.js";
import { type StatsSources, stepsOf } from "./read-window.js";
import { startRecorder } from "./recorder.js";
import { readKey } from "./refusals/read-key.js";
import { singleFlight, singleFlightBy } from "./single-flight.js";
import { readSpend } from "./spend/read-spend.js";
import type { TopKeysQuery, TopKeysReader } from "./top-keys/read-top-keys.js";
import type { Traffic } from "./traffic.js";
import type { KeyView, TopKeysView } from "./views/keys.js";
import type { LoadView } from "./views/load.js";
import type { ModelPrice, SpendView } from "./views/spend.js";
import type { StatsView } from "./views/stats.js";
import type { AskedTime } from "./views/time.js";

export interface Figures {
  /** If the history is unreachable, shows what this instance counted itself. */
  readStats(asked: AskedTime & { rule?: string | undefined }): Promise<StatsView>;
  /** Load shedding, adaptive limits and waiting requests; for all rules or one. */
  readLoad(asked: AskedTime & { rule?: string | undefined }): Promise<LoadView>;
  /** Units by rule and model. */
  readSpend(
    asked: AskedTime & { rule?: string | undefined; prices?: readonly ModelPrice[] | undefined },
  ): Promise<SpendView>;
  readTopKeys(query: TopKeysQuery): Promise<TopKeysView>;
  /** One key's traffic by rule, and its last refusals. */
  readKey(query: { attributes: Attributes; fromMs: number; toMs: number }): Promise<KeyView>;
  /** The attribute names seen in requests. */
  readAttributes(): Promise<SeenNames>;
  readonly live: LiveFeed;
  /** Writes what has not been written yet. */
  close(): Promise<void>;
}

interface FiguresOptions {
  readonly limiter: Limiter;
  readonly traffic: Traffic;
  readonly history: History;
  /** In memory, as a fallback; absent if `history` is in memory itself. */
  readonly own?: History | undefined;
  readonly shared: SharedState;
  readonly instance: string;
  readonly heartbeat: Pick<Heartbeat, "report" | "readAll">;
  readonly health: Pick<StoreHealth, "view">;
  readonly topKeys: Pick<TopKeysReader, "read">;
  readonly log: Log;
  readonly storeKind: string;
  alertsFiring(): number;
}

/** Cached: a day of a thousand rules takes a hundred thousand texts to read, from the Redis that decides. */
const STATS_FOR_MS = 1_000;
const ATTRIBUTES_FOR_MS = 2_000;

export function startFigures(options: FiguresOptions): Figures {
  const { limiter, history, own, shared, heartbeat, health, storeKind, traffic, topKeys } = options;
  const load = new SharedLoad({ limiter, instance: options.instance, shared });
  const recorder = startRecorder({ ...options, own, load });
  const sources: StatsSources = {
    history,
    own,
    outage: () => health.view(),
    storeKind,
    heartbeat,
    rules: () => limiter.rules,
    rulesVersion: () => limiter.rulesVersion,
    alertsFiring: options.alertsFiring,
  };
  const live = new LiveFeed(() => readLive(sources));
  const statsOfAll = singleFlightBy(STATS_FOR_MS, (time: AskedTime) => readStats(sources, time));
  const loadOfAll = singleFlightBy(STATS_FOR_MS, (time: AskedTime) => readLoad(sources, load, time));
  // Screens showing the same range ask at different milliseconds, but get the same whole steps: share the cache entry.
  const nameOf = (time: AskedTime): string => {
    const { step, fromMs, toMs } = stepsOf(time, Date.now());
    return time.window === "range" ? `${step} ${fromMs} ${toMs}` : time.window;
  };
  return {
    readStats: (asked) => (asked.rule === undefined ? statsOfAll(nameOf(asked), asked) : readStats(sources, asked)),
    readLoad: (asked) => (asked.rule === undefined ? loadOfAll(nameOf(asked), asked) : readLoad(sources, load, asked)),
    readSpend: (asked) => readSpend(sources, limiter, asked),
    readTopKeys: (query) => topKeys.read(query),
    readKey: (query) =>
      readKey({ shared, topKeys: traffic.topKeys, log: traffic.refusals, rules: () => limiter.rules }, query),
    readAttributes: singleFlight(ATTRIBUTES_FOR_MS, () => readAttributes(shared, traffic.attributes)),
    live,
    async close() {
      live.close();
      await recorder.close();
    },
  };
}
