/** Shared by the overview and the wall screen: figures, charts, and side panels. */
import type { Latency, LiveView, StatsView } from "../api/shapes.js";
import { Figure, Figures } from "../components/figures.js";
import { clockTime, count, milliseconds, rate, share } from "../components/format.js";
import { Notice, Panel } from "../components/panel.js";
import { LatencyChart, TrafficChart } from "../components/traffic-charts.js";
import { coverageWords, isCounted } from "../components/traffic-points.js";
import type { Feed } from "../live/live-feed.js";
import { BusyRules, FiringAlerts, StoreHealth } from "./overview-panels.js";
import type { Overview } from "./use-overview.js";

export function PresentFigures({ of: { isLive, now, stats } }: { of: Overview }) {
  return isLive ? <LiveFigures latest={now} /> : <PastFigures stats={stats.data} />;
}

interface ChartsProps {
  readonly of: Overview;
  /** Absent on a wall screen, which nobody operates. */
  readonly onZoom?: (fromMs: number, toMs: number) => void;
}

export function Charts({ of: { isLive, time, stats, points, before, markers }, onZoom }: ChartsProps) {
  const zoom = onZoom && { onZoom };
  const words = isLive ? "Each second, of the last minutes" : coverageWords(stats.data, time);
  return (
    <>
      <Panel title="Decisions" about={words}>
        <TrafficChart points={points} before={before} markers={markers} {...zoom} />
      </Panel>
      <Panel title="Latency of decisions">
        <LatencyChart points={points} markers={markers} {...zoom} />
      </Panel>
    </>
  );
}

export function SidePanels({ of: { isLive, now, stats } }: { of: Overview }) {
  return (
    <div className="stack">
      <FiringAlerts />
      <BusyRules latest={now} stats={stats.data} isLive={isLive} />
      <StoreHealth latest={now} />
    </div>
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

function LiveFigures({ latest }: { latest: LiveView | undefined }) {
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

function PastFigures({ stats }: { stats: StatsView | undefined }) {
  // Time that nobody counted is unknown, not quiet.
  const total = isCounted(stats) ? stats?.total : undefined;
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
