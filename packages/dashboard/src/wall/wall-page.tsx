/** The overview for a wall screen: no navigation and no controls, large figures, the shown time from the address (`?range=6h`). */
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { statsQuery } from "../api/queries.js";
import { clockTime, currentZone } from "../components/format.js";
import { Panel } from "../components/panel.js";
import { LatencyChart, TrafficChart } from "../components/traffic-charts.js";
import { coverageWords, pointsOf } from "../components/traffic-points.js";
import { useLiveFeed } from "../live/use-live-feed.js";
import { about, FeedNotice, LAST_HOUR, LiveFigures, PastFigures } from "../pages/overview.js";
import { BusyRules, FiringAlerts, StoreHealth } from "../pages/overview-panels.js";
import { useBefore } from "../range/use-before.js";
import { useTimeline } from "../range/use-timeline.js";
import mark from "../styles/mark.svg";
import { useTime } from "../time/use-time.js";

export function WallPage() {
  const { time, compare } = useTime("live");
  const isLive = time.range === "live";
  const feed = useLiveFeed();
  const stats = useQuery(statsQuery({ time: isLive ? LAST_HOUR : time }));
  const before = useBefore({ time, compare });
  const markers = useTimeline(time);
  const points = pointsOf(isLive, feed, stats.data);
  const now = feed.state === "live" ? feed.latest : undefined;
  useEffect(() => {
    document.title = "Wall screen · Sluice";
  }, []);
  return (
    <div className="page wall">
      <header className="page-head">
        <h1>
          <img src={mark} alt="" /> Sluice
        </h1>
        <p>
          {about(feed.latest) ?? `figures of ${clockTime(Date.now())}`} · {currentZone()}
        </p>
      </header>
      <FeedNotice feed={feed} />
      {isLive ? <LiveFigures latest={now} /> : <PastFigures stats={stats.data} />}
      <div className="columns">
        <div className="stack">
          <Panel title="Decisions" about={isLive ? "Each second, of the last minutes" : coverageWords(stats.data)}>
            <TrafficChart points={points} before={before} markers={markers} />
          </Panel>
          <Panel title="Latency of decisions">
            <LatencyChart points={points} markers={markers} />
          </Panel>
        </div>
        <div className="stack">
          <FiringAlerts />
          <BusyRules latest={now} stats={stats.data} isLive={isLive} />
          <StoreHealth latest={now} />
        </div>
      </div>
    </div>
  );
}
