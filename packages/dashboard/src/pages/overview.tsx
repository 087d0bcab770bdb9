/** Allowed and refused requests, now and over the last hour or day; utilisation of the limits; firing alerts. */
import { useMemo } from "react";
import type { StatsView } from "../api/shapes.js";
import { Utilisation } from "../components/figures.js";
import { Empty, Page, Panel } from "../components/panel.js";
import { isCounted } from "../components/traffic-points.js";
import { TimeBar } from "../range/time-bar.js";
import { timeWords } from "../time/time-address.js";
import { about, Charts, FeedNotice, PresentFigures, SidePanels } from "./overview-parts.js";
import { useOverview } from "./use-overview.js";

export function OverviewPage() {
  const overview = useOverview();
  const { feed, set, past, stats } = overview;
  return (
    <Page
      title="Overview"
      about={about(feed.latest)}
      actions={<TimeBar fallback="live" hasLive compareWith="charts" />}
    >
      <FeedNotice feed={feed} />
      <PresentFigures of={overview} />
      <div className="columns">
        <div className="stack">
          <Charts of={overview} onZoom={(fromMs, toMs) => set({ range: "custom", fromMs, toMs })} />
          <Panel
            title="How close keys run to their limits"
            about={`Checks of ${timeWords(past)} by the share of the limit in use after them`}
          >
            <UtilisationOf stats={stats.data} isFailing={stats.isError} />
          </Panel>
        </div>
        <SidePanels of={overview} />
      </div>
    </Page>
  );
}

function UtilisationOf({ stats, isFailing }: { stats: StatsView | undefined; isFailing: boolean }) {
  // Memoised: there may be thousands of rules, and the live stream re-renders every second.
  const steps = useMemo(
    () =>
      Array.from({ length: 10 }, (_, step) =>
        (stats?.rules ?? []).reduce((sum, { utilisation }) => sum + (utilisation[step] ?? 0), 0),
      ),
    [stats],
  );
  if (steps.some((value) => value > 0)) return <Utilisation steps={steps} />;
  if (stats === undefined) return <Empty title={isFailing ? "Unknown." : "Reading …"} />;
  return <Empty title={isCounted(stats) ? "No checks in this time." : "Unknown."} />;
}
