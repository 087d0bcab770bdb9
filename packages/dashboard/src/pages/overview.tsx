/** Allowed and refused requests, now and over the last hour or day; utilisation of the limits; firing alerts. */
import { useQuery } from "@tanstack/react-query";
import { statsQuery } from "../api/queries.js";
import type { Latency, LiveView, StatsView } from "../api/shapes.js";
import { Figure, Figures, Utilisation } from "../components/figures.js";
import { clockTime, count, milliseconds, rate, share } from "../components/format.js";
import { Empty, Notice, Page, Panel } from "../components/panel.js";
import { LatencyChart, TrafficChart } from "../components/traffic-charts.js";
import { coverageWords, pointsOf } from "../components/traffic-points.js";
import type { Feed } from "../live/live-feed.js";
import { useLiveFeed } from "../live/use-live-feed.js";
import { TimeBar } from "../range/time-bar.js";
import { useBefore } from "../range/use-before.js";
import { useTimeline } from "../range/use-timeline.js";
import { type ShownTime, timeWords } from "../time/time-address.js";
import { useTime } from "../time/use-time.js";
import { BusyRules, FiringAlerts, StoreHealth } from "./overview-panels.js";

export const LAST_HOUR: ShownTime = { range: "1h" };

export function OverviewPage() {
  const { time, compare, set } = useTime("live");
  const isLive = time.range === "live";
  const feed = useLiveFeed();
  // Beside the live chart stand the figures of the last hour.
  const past = isLive ? LAST_HOUR : time;
  const stats = useQuery(statsQuery({ time: past }));
  const before = useBefore({ time, compare });
  const markers = useTimeline(time);
  const zoom = (fromMs: number, toMs: number): void => set({ range: "custom", fromMs, toMs });
  const points = pointsOf(isLive, feed, stats.data);
  const latest = feed.latest;
  // A lost stream has no present figures.
  const now = feed.state === "live" ? latest : undefined;
  return (
    <Page title="Overview" about={about(latest)} actions={<TimeBar fallback="live" hasLive compareWith="charts" />}>
      <FeedNotice feed={feed} />
      {isLive ? <LiveFigures latest={now} /> : <PastFigures stats={stats.data} />}
      <div className="columns">
        <div className="stack">
          <Panel title="Decisions" about={isLive ? "Each second, of the last minutes" : coverageWords(stats.data)}>
            <TrafficChart points={points} before={before} markers={markers} onZoom={zoom} />
          </Panel>
          <Panel title="Latency of decisions">
            <LatencyChart points={points} markers={markers} onZoom={zoom} />
          </Panel>
          <Panel
            title="How close keys run to their limits"
            about={`Checks of ${timeWords(past)} by the share of the limit in use after them`}
          >
            <UtilisationOf stats={stats.data} isFailing={stats.isError} />
          </Panel>
        </div>
        <div className="stack">
          <FiringAlerts />
          <BusyRules latest={now} stats={stats.data} isLive={isLive} />
          <StoreHealth latest={now} />
        </div>
      </div>
    </Page>
  );
}

export function about(latest: LiveView | undefined): string | undefined {
  if (latest === undefined) return undefined;
  const instances =
    latest.scope === "instance"
      ? "this instance alone"
      : `${latest.instances} ${latest.instances === 1 ? "instance" : "instances"}`;
  return `${instances} · rules version ${latest.rulesVersion} · figures of ${clockTime(latest.atMs)}`;
}

export function FeedNotice({ feed }: { feed: Feed }) {
  if (feed.state === "unavailable") {
    return (
      <Notice title="No live figures">
        This service does not offer the live stream. Hour and day are read every few seconds.
      </Notice>
    );
  }
  if (feed.state !== "lost") return null;
  const since = feed.lastEventAtMs === undefined ? "" : ` The chart ends at ${clockTime(feed.lastEventAtMs)}.`;
  return (
    <Notice tone="warn" title="The live stream is lost.">
      It is opened again by itself.{since}
    </Notice>
  );
}

function quantiles({ p95Ms, p99Ms }: Latency): string {
  return `p95 ${milliseconds(p95Ms)}, p99 ${milliseconds(p99Ms)}`;
}

export function LiveFigures({ latest }: { latest: LiveView | undefined }) {
  const shown = (value: number | undefined, format: (value: number) => string) =>
    value === undefined ? "–" : format(value);
  const total = (latest?.allowedPerSecond ?? 0) + (latest?.refusedPerSecond ?? 0);
  return (
    <Figures>
      <Figure label="Allowed" mark="allowed">
        {shown(latest?.allowedPerSecond, rate)}{" "}
        <small>/s{(latest?.unmatchedPerSecond ?? 0) > 0 && `, ${rate(latest!.unmatchedPerSecond)} met no rule`}</small>
      </Figure>
      <Figure label="Refused" mark="refused">
        {shown(latest?.refusedPerSecond, rate)}{" "}
        <small>/s{total > 0 && `, ${share(latest!.refusedPerSecond / total)}`}</small>
      </Figure>
      <Figure label="Shadow-refused" mark="shadow">
        {shown(latest?.shadowRefusedPerSecond, rate)} <small>/s</small>
      </Figure>
      <Figure label="Median latency" mark="latency">
        {total === 0 ? "–" : shown(latest?.latency.p50Ms, milliseconds)}{" "}
        <small>{total > 0 && quantiles(latest!.latency)}</small>
      </Figure>
      <Figure label="By failure policy" {...((latest?.degradedPerSecond ?? 0) > 0 && { mark: "refused" as const })}>
        {shown(latest?.degradedPerSecond, rate)} <small>/s</small>
      </Figure>
      <Figure label="Event loop">{shown(latest?.eventLoopUtilisation, share)}</Figure>
    </Figures>
  );
}

export function PastFigures({ stats }: { stats: StatsView | undefined }) {
  const total = stats?.total;
  const all = (total?.allowed ?? 0) + (total?.refused ?? 0);
  return (
    <Figures>
      <Figure label="Allowed" mark="allowed">
        {total === undefined ? "–" : count(total.allowed)}{" "}
        <small>{(total?.unmatched ?? 0) > 0 && `${count(total!.unmatched)} met no rule`}</small>
      </Figure>
      <Figure label="Refused" mark="refused">
        {total === undefined ? "–" : count(total.refused)} <small>{all > 0 && share(total!.refused / all)}</small>
      </Figure>
      <Figure label="Shadow-refused" mark="shadow">
        {total === undefined ? "–" : count(total.shadowRefused)}
      </Figure>
      <Figure label="Median latency" mark="latency">
        {all === 0 ? "–" : milliseconds(total!.latency.p50Ms)} <small>{all > 0 && quantiles(total!.latency)}</small>
      </Figure>
      <Figure label="By failure policy" {...((total?.degraded ?? 0) > 0 && { mark: "refused" as const })}>
        {total === undefined ? "–" : count(total.degraded)}
      </Figure>
    </Figures>
  );
}

function UtilisationOf({ stats, isFailing }: { stats: StatsView | undefined; isFailing: boolean }) {
  const steps = Array.from({ length: 10 }, (_, step) =>
    (stats?.rules ?? []).reduce((sum, { utilisation }) => sum + (utilisation[step] ?? 0), 0),
  );
  return steps.some((value) => value > 0) ? (
    <Utilisation steps={steps} />
  ) : (
    <Empty title={stats === undefined ? (isFailing ? "Unknown." : "Reading …") : "No checks yet."} />
  );
}
