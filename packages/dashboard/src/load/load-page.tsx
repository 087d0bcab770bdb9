/** Load: utilisation, traffic by class, adaptive limits, waiting requests, and blocked keys. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { loadQuery } from "../api/queries.js";
import type { LoadView } from "../api/shapes.js";
import { count } from "../components/format.js";
import { Empty, Page, Panel, Read } from "../components/panel.js";
import { BlockedKeys } from "../keys/blocked-keys.js";
import { TimeBar } from "../range/time-bar.js";
import { useMayEditRules } from "../shell/session.js";
import { useTime } from "../time/use-time.js";
import { AdaptivePanel } from "./adaptive-panel.js";
import { SheddingPanel } from "./shedding-panel.js";
import { WaitingKeys, WaitingPanel, WaitsOfRule } from "./waiting-panel.js";

export function LoadPage() {
  const { time } = useTime("live");
  const load = useQuery(loadQuery({ time }));
  return (
    <Page
      title="Load"
      about={load.data === undefined ? "Utilisation, moving limits, and who waits." : ofWhom(load.data)}
      actions={<TimeBar fallback="live" hasLive />}
    >
      <Read of={load} what="figures of load">
        {(view) => <Load view={view} />}
      </Read>
      <BlockedKeys />
    </Page>
  );
}

function ofWhom({ scope, instances }: LoadView): string {
  if (scope === "instance") return "Of this instance alone: the others cannot be asked.";
  return `Of ${instances === 1 ? "1 instance" : `${count(instances)} instances`}.`;
}

function Load({ view }: { view: LoadView }) {
  const { shedding, adaptive, waiting } = view;
  if (shedding.length + adaptive.length + waiting.length === 0) return <NoLoadRules />;
  return (
    <>
      <Few>
        {shedding.map((rule) => (
          <SheddingPanel key={rule.rule} rule={rule} view={view} />
        ))}
      </Few>
      <Few>
        {adaptive.map((rule) => (
          <AdaptivePanel key={rule.rule} rule={rule} view={view} />
        ))}
      </Few>
      {waiting.length > 0 && (
        <>
          <WaitingPanel view={view} />
          <WaitingKeys view={view} />
        </>
      )}
    </>
  );
}

const SHOWN = 10;

/** Limits the number of charts shown at once. */
function Few({ children }: { children: readonly ReactNode[] }) {
  const [isAll, setIsAll] = useState(false);
  const more = children.length - SHOWN;
  return (
    <>
      {isAll ? children : children.slice(0, SHOWN)}
      {more > 0 && !isAll && (
        <button type="button" className="button" onClick={() => setIsAll(true)}>
          Show {count(more)} more
        </button>
      )}
    </>
  );
}

function NoLoadRules() {
  const mayEdit = useMayEditRules();
  return (
    <Panel>
      <Empty title="No rule sheds load, moves its limit, or lets requests wait.">
        <p>
          A rule with <code>algorithm: load-shedding</code> refuses what matters least when servers are busy. With{" "}
          <code>adapt</code> a limit moves with utilisation. With <code>maxWait</code> requests wait for their turn
          instead of being refused.
        </p>
        {mayEdit && (
          <Link href="/new-rule" className="button">
            New rule
          </Link>
        )}
      </Empty>
    </Panel>
  );
}

/** The same for a single rule, on its page; nothing if none of it applies. */
export function RuleLoad({ rule }: { rule: string }) {
  const { time } = useTime();
  const load = useQuery(loadQuery({ time, rule }));
  if (load.data !== undefined) {
    const { shedding, adaptive, waiting } = load.data;
    if (shedding.length + adaptive.length + waiting.length === 0) return null;
  }
  return (
    <>
      {load.data?.scope === "instance" && <p className="soft small">{ofWhom(load.data)}</p>}
      <Read of={load} what="figures of load">
        {(view) => (
          <>
            {view.shedding.map((one) => (
              <SheddingPanel key={one.rule} rule={one} view={view} />
            ))}
            {view.adaptive.map((one) => (
              <AdaptivePanel key={one.rule} rule={one} view={view} />
            ))}
            {view.waiting.map((one) => (
              <WaitsOfRule key={one.rule} rule={one} view={view} />
            ))}
            {view.waiting.length > 0 && <WaitingKeys view={view} />}
          </>
        )}
      </Read>
    </>
  );
}
