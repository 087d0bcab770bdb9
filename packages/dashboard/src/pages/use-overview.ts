/** The figures of the selected time, live or past, for the overview and the wall screen. */
import { useQuery } from "@tanstack/react-query";
import { statsQuery } from "../api/queries.js";
import { pointsOf } from "../components/traffic-points.js";
import { useLiveFeed } from "../live/use-live-feed.js";
import { useBefore } from "../range/use-before.js";
import { useTimeline } from "../range/use-timeline.js";
import type { ShownTime } from "../time/time-address.js";
import { useTime } from "../time/use-time.js";

const LAST_HOUR: ShownTime = { range: "1h" };

export type Overview = ReturnType<typeof useOverview>;

export function useOverview() {
  const { time, compare, set } = useTime("live");
  const isLive = time.range === "live";
  const feed = useLiveFeed();
  // The live chart is accompanied by the last hour's figures.
  const past = isLive ? LAST_HOUR : time;
  const stats = useQuery(statsQuery({ time: past }));
  const before = useBefore({ time, compare });
  const markers = useTimeline(time);
  const points = pointsOf(isLive, feed, stats.data);
  // With a lost stream, current figures are unknown.
  const now = feed.state === "live" ? feed.latest : undefined;
  return { time, set, isLive, past, feed, stats, before, markers, points, now };
}
