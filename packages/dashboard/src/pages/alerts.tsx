/** Firing and resolved alerts, and the state of the webhooks. */
import { useQuery } from "@tanstack/react-query";
import { memo, useMemo, useState } from "react";
import { AlertActions, Silences } from "../alerts/alert-actions.js";
import { AlertTargets } from "../alerts/receivers.js";
import { alertsQuery } from "../api/queries.js";
import type { AlertKind, AlertsView, AlertView } from "../api/shapes.js";
import { Choice } from "../components/controls.js";
import { dayTime, span, visible } from "../components/format.js";
import { LongRows } from "../components/long-rows.js";
import { Empty, Notice, Page, Panel, Read } from "../components/panel.js";
import { RowLink } from "../shell/row-link.js";
import { useMay } from "../shell/session.js";
import { useSearch } from "../time/use-search.js";

const kinds: Readonly<Record<AlertKind, string>> = {
  "unusual-rate": "Unusual rate",
  "refusal-share": "Many refusals",
  "new-heavy-key": "New heavy key",
  "store-degraded": "Store away",
  "store-memory": "Store memory",
  "propagation-stuck": "Rules not reaching all",
  threshold: "Own threshold",
};

export function Severity({ alert }: { alert: AlertView }) {
  if (alert.state === "resolved") return <span className="tag">{kinds[alert.kind]}</span>;
  return (
    <span className={`tag ${alert.severity === "critical" ? "bad" : "warn"}`}>
      <span className="dot" />
      {kinds[alert.kind]}
      <span className="unseen">, {alert.severity}</span>
    </span>
  );
}

const shownStates = [
  { value: "all", label: "All" },
  { value: "firing", label: "Firing" },
  { value: "resolved", label: "Resolved" },
] as const;

export function AlertsPage() {
  const alerts = useQuery(alertsQuery);
  const [shown, setShown] = useState<(typeof shownStates)[number]["value"]>("all");
  return (
    <Page
      title="Alerts"
      about="Unusual rates, sudden refusals, new heavy keys, and a store or rules that lag. Resolved ones are kept for eight days."
      actions={<Choice label="State" value={shown} options={shownStates} onChange={setShown} />}
    >
      <Read of={alerts} what="alerts">
        {(view) => (
          <>
            {view.scope === "instance" && (
              <Notice tone="warn" title="Alerts of before cannot be read.">
                They are kept in the store, which does not answer. You see those that this instance found itself.
              </Notice>
            )}
            <Panel flush>
              <AlertTable view={view} shown={shown} />
            </Panel>
            <Silences />
            <AlertTargets view={view} />
          </>
        )}
      </Read>
    </Page>
  );
}

/** Links to the keys of the alert's rule: the most refused ones first if the alert is about refusals. */
function keysOf(rule: string, { kind }: AlertView): string {
  const by = kind === "refusal-share" || kind === "threshold" ? "&by=refusals" : "";
  return `/top-keys?rule=${encodeURIComponent(rule)}${by}`;
}

function AlertTable({ view, shown }: { view: AlertsView; shown: "all" | AlertView["state"] }) {
  const wanted = new URLSearchParams(useSearch()).get("alert");
  const mayEdit = useMay("editor");
  const alerts = useMemo(
    () => view.alerts.filter(({ state }) => shown === "all" || state === shown),
    [view.alerts, shown],
  );
  if (alerts.length === 0 && view.scope === "instance") {
    return <Empty title="This instance has found nothing.">The findings of others are unknown.</Empty>;
  }
  if (alerts.length === 0) {
    return <Empty title={shown === "firing" ? "Nothing is firing." : "No alerts."}>All is as usual.</Empty>;
  }
  return (
    <table className={`cards long alerts ${mayEdit ? "acting" : ""}`} aria-rowcount={alerts.length + 1}>
      <thead>
        <tr>
          <th scope="col">Alert</th>
          <th scope="col">Finding</th>
          <th scope="col">Rule</th>
          <th scope="col">Began</th>
          <th scope="col">State</th>
          {mayEdit && (
            <th scope="col">
              <span className="unseen">Act</span>
            </th>
          )}
        </tr>
      </thead>
      <LongRows rows={alerts} nameOf={nameOf}>
        {(alert, name) => (
          <AlertRow
            key={name}
            alert={alert}
            state={stateOf(alert, view.atMs)}
            isWanted={alert.id === wanted}
            mayEdit={mayEdit}
          />
        )}
      </LongRows>
    </table>
  );
}

function nameOf({ id }: AlertView): string {
  return id;
}

function stateOf({ state, startedAtMs, endedAtMs }: AlertView, nowMs: number): string {
  if (state === "firing") return `firing for ${span(nowMs - startedAtMs)}`;
  return `resolved after ${span((endedAtMs ?? nowMs) - startedAtMs)}`;
}

interface AlertRowProps {
  readonly alert: AlertView;
  /** As text, so that an unchanged row is not re-rendered at each poll. */
  readonly state: string;
  readonly isWanted: boolean;
  readonly mayEdit: boolean;
}

const AlertRow = memo(function AlertRow({ alert, state, isWanted, mayEdit }: AlertRowProps) {
  return (
    <tr className={isWanted ? "wanted" : undefined}>
      <td>
        <Severity alert={alert} />
      </td>
      <td className="break">{visible(alert.summary)}</td>
      <td data-label="Rule" className="rule-cell">
        {alert.rule === undefined ? (
          "–"
        ) : (
          <div>
            <RowLink href={`/rules/${alert.rule}`} className="mono">
              {alert.rule}
            </RowLink>
            <div className="small">
              <RowLink href={keysOf(alert.rule, alert)}>
                Its keys<span className="unseen"> of {alert.rule}</span>
              </RowLink>
            </div>
          </div>
        )}
      </td>
      <td data-label="Began">{dayTime(alert.startedAtMs)}</td>
      <td data-label="State">
        <div>
          {state}
          {alert.acknowledged !== undefined && (
            <div className="soft small break">
              {alert.acknowledged.by} looks after it
              {alert.acknowledged.note !== undefined && `: ${visible(alert.acknowledged.note)}`}
            </div>
          )}
          {alert.silencedUntilMs !== undefined && (
            <div className="soft small">silenced until {dayTime(alert.silencedUntilMs)}</div>
          )}
        </div>
      </td>
      {mayEdit && (
        <td className="number">
          <AlertActions alert={alert} />
        </td>
      )}
    </tr>
  );
});
