/** The events of the selected time for chart markers: rule changes, promotions, alerts. */
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { request } from "../api/request.js";
import type { TimelineEvent, TimelineView } from "../api/shapes.js";
import { visible } from "../components/format.js";
import type { Marker } from "../components/markers.js";
import { boundsOf, isOver, type ShownTime, timeName } from "../time/time-address.js";

const timelineQuery = (time: ShownTime, rule: string | undefined) =>
  queryOptions({
    queryKey: ["timeline", timeName(time), rule ?? ""],
    queryFn: () => {
      const { fromMs, toMs } = boundsOf(time);
      return request<TimelineView>("/timeline", { query: { from: fromMs, to: toMs, rule } });
    },
    refetchInterval: isOver(time) ? false : 10_000,
    placeholderData: keepPreviousData,
  });

const kinds: Readonly<Record<TimelineEvent["kind"], string>> = {
  rules: "Rules changed",
  promotion: "Candidate promoted",
  rollback: "Rolled back",
  alert: "Alert",
};

export function useTimeline(time: ShownTime, rule?: string): readonly Marker[] {
  const { data } = useQuery(timelineQuery(time, rule));
  return (data?.events ?? []).map((event) => ({
    atMs: event.atMs,
    kind: event.kind,
    label: visible(
      event.kind === "alert" ? `Alert: ${event.text}` : `${kinds[event.kind]}, version ${event.version}: ${event.text}`,
    ),
    href: event.kind === "alert" ? `/alerts?alert=${event.alert}` : `/history?version=${event.version}`,
  }));
}
