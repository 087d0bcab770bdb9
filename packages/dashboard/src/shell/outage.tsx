/**
 * A banner on every page while the store does not answer: since when, why, and what the figures mean then. Reads the live stream, or the
 * store's view if there is no stream.
 */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";
import { contact } from "../api/contact.js";
import { storeQuery } from "../api/queries.js";
import type { OutageView, Scope } from "../api/shapes.js";
import { clockTime, span } from "../components/format.js";
import { useLiveFeed } from "../live/use-live-feed.js";

interface StoreTrouble {
  /** For the responding instance. */
  readonly outage: OutageView | undefined;
  readonly degradedInstances: number;
  readonly instances: number;
  readonly scope: Scope;
}

/** Undefined if all is well, or nothing is known. */
function useStoreTrouble(): StoreTrouble | undefined {
  const { state, latest } = useLiveFeed();
  const hasStream = state === "live" && latest !== undefined;
  const { data } = useQuery({ ...storeQuery, enabled: !hasStream });
  const trouble: StoreTrouble | undefined = hasStream
    ? {
        outage: latest.store.outage,
        degradedInstances: latest.store.degradedInstances,
        instances: latest.instances,
        scope: latest.scope,
      }
    : data && { outage: data.outage, degradedInstances: 0, instances: 1, scope: "fleet" };
  if (trouble === undefined) return undefined;
  const isWell = trouble.outage === undefined && trouble.degradedInstances === 0 && trouble.scope === "fleet";
  return isWell ? undefined : trouble;
}

export function OutageBanner() {
  const trouble = useStoreTrouble();
  const { isUp } = useSyncExternalStore(contact.subscribe, contact.current);
  // While the service itself is unreachable, its store's state is unknown.
  return <div role="status">{trouble !== undefined && isUp && <Trouble trouble={trouble} />}</div>;
}

function Trouble({ trouble: { outage, degradedInstances, instances, scope } }: { trouble: StoreTrouble }) {
  const [nowMs, setNowMs] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const alone = scope === "instance" ? "Figures are those of this instance alone." : "";
  if (outage === undefined && degradedInstances === 0) {
    return (
      <div className="outage mild">
        <strong>The history that the instances share cannot be written or read.</strong>
        <span>{alone}</span>
      </div>
    );
  }
  if (outage?.partial) {
    return (
      <div className="outage mild">
        <strong>{`The store has answered some calls late or not at all since ${clockTime(outage.sinceMs)}: ${outage.cause}.`}</strong>
        <span>Failure policies answered those requests; the store decides the others. {alone}</span>
      </div>
    );
  }
  return (
    <div className="outage">
      <strong>
        {outage === undefined
          ? `The store does not answer ${degradedInstances} of ${instances} instances.`
          : `The store has not answered since ${clockTime(outage.sinceMs)} (${span(nowMs - outage.sinceMs)}): ${outage.cause}.`}
      </strong>
      <span>
        {outage === undefined
          ? "There, failure policies answer requests."
          : "Failure policies answer requests; what counters hold is unknown."}{" "}
        {alone}
      </span>
    </div>
  );
}
