/** Allowed and refused requests, now and over the last hour or day; utilisation of the limits; firing alerts. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { statsQuery } from "../api/queries.js";
import type { LiveView, StatsView } from "../api/shapes.js";
import { Choice, spans } from "../components/controls.js";
import { Figure, Figures, Utilisation } from "../components/figures.js";
import { clockTime, count, milliseconds, rate, share } from "../components/format.js";
import { Empty, Notice, Page, Panel } from "../components/panel.js";
import { LatencyChart, TrafficChart } from "../components/traffic-charts.js";
import { coverageWords, pointsOf } from "../components/traffic-points.js";
import type { Feed } from "../live/live-feed.js";
import { useLiveFeed } from "../live/use-live-feed.js";
import { BusyRules, FiringAlerts, StoreHealth } from "./overview-panels.js";

export function OverviewPage() {
  const [span, setSpan] = useState<(typeof spans)[number]["value"]>("live");
  const feed = useLiveFeed();
  const stats = useQuery(statsQuery({ window: span === "day" ? "day" : "hour" }));
  const latest = feed.latest;
  // A lost stream has no present figures.
  const now = feed.state === "live" ? latest : undefined;
  return (
    <Page
      title="Overview"
      about={about(latest)}
      actions={<Choice label="Time" value={span} options={spans} onChange={setSpan} />}
    >
      <FeedNotice feed={feed} />
      {span === "live" ? <LiveFigures latest={now} /> : <PastFigures stats={stats.data} />}
      <div className="columns">
        <div className="stack">
          <Panel
            title="Decisions"
            about={span === "live" ? "Each second, of the last minutes" : coverageWords(stats.data)}
          >
            <TrafficChart points={pointsOf(span, feed, stats.data)} />
          </Panel>
          <Panel title="Latency of decisions">
            <LatencyChart points={pointsOf(span, feed, stats.data)} />
          </Panel>
          <Panel
            title="How close keys run to their limits"
            about={`Checks of the last ${span === "day" ? "day" : "hour"} by the share of the limit in use after them`}
          >
            <UtilisationOf stats={stats.data} isFailing={stats.isError} />
          </Panel>
        </div>
        <div className="stack">
          <FiringAlerts />
          <BusyRules latest={now} stats={stats.data} isLive={span === "live"} />
          <StoreHealth latest={now} />
        </div>
      </div>
    </Page>
  );
}

function about(latest: LiveView | undefined): string | undefined {
  if (latest === undefined) return undefined;
  const instances =
    latest.scope === "instance"
      ? "this instance alone"
      : `${latest.instances} ${latest.instances === 1 ? "instance" : "instances"}`;
  return `${instances} · rules version ${latest.rulesVersion} · figures of ${clockTime(latest.atMs)}`;
}

function FeedNotice({ feed }: { feed: Feed }) {
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
        <small>{total > 0 && `99 %: ${milliseconds(latest!.latency.p99Ms)}`}</small>
      </Figure>
      <Figure label="By failure policy" {...((latest?.degradedPerSecond ?? 0) > 0 && { mark: "refused" as const })}>
        {shown(latest?.degradedPerSecond, rate)} <small>/s</small>
      </Figure>
      <Figure label="Event loop">{shown(latest?.eventLoopUtilisation, share)}</Figure>
    </Figures>
  );
}

function PastFigures({ stats }: { stats: StatsView | undefined }) {
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
        {all === 0 ? "–" : milliseconds(total!.latency.p50Ms)}{" "}
        <small>{all > 0 && `99 %: ${milliseconds(total!.latency.p99Ms)}`}</small>
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
