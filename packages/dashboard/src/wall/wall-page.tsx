/** The overview for a wall screen: no navigation or controls, large figures, the time from the URL (`?range=6h`). */
import { useEffect } from "react";
import { clockTime, currentZone } from "../components/format.js";
import { about, Charts, FeedNotice, PresentFigures, SidePanels } from "../pages/overview-parts.js";
import { useOverview } from "../pages/use-overview.js";
import mark from "../styles/mark.svg";

export function WallPage() {
  const overview = useOverview();
  const { feed } = overview;
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
      <PresentFigures of={overview} />
      <div className="columns">
        <div className="stack">
          <Charts of={overview} />
        </div>
        <SidePanels of={overview} />
      </div>
    </div>
  );
}
