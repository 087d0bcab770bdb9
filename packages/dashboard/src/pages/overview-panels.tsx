/** The overview's side panels: problems, busy rules, store health. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { alertsQuery, storeQuery } from "../api/queries.js";
import type { LiveView, StatsView } from "../api/shapes.js";
import { GateBar } from "../components/figures.js";
import { count, milliseconds, rate, share, span, visible } from "../components/format.js";
import { Empty, Panel, Read } from "../components/panel.js";
import { isCounted } from "../components/traffic-points.js";
import { Severity } from "./alerts.js";

const MOST = 8;
/** Not a rule's id: beyond a thousand, rules are counted together. */
const OTHER_RULES = "(other)";

export function FiringAlerts() {
  const alerts = useQuery(alertsQuery);
  return (
    <Panel title="Alerts" flush actions={<Link href="/alerts">All alerts</Link>}>
      <Read of={alerts} what="alerts">
        {({ alerts: all, atMs, scope }) => {
          const firing = all.filter(({ state }) => state === "firing");
          if (firing.length === 0) {
            return scope === "fleet" ? (
              <Empty title="Nothing is firing." />
            ) : (
              <Empty title="Unknown.">The alerts that the instances keep cannot be read.</Empty>
            );
          }
          return (
            <ul className="list">
              {firing.slice(0, MOST).map((alert) => (
                <li key={alert.id}>
                  <Severity alert={alert} />{" "}
                  {alert.rule !== undefined && (
                    <Link href={`/rules/${alert.rule}`} className="mono">
                      {alert.rule}
                    </Link>
                  )}
                  <p className="break">{visible(alert.summary)}</p>
                  <p className="soft small">for {span(atMs - alert.startedAtMs)}</p>
                </li>
              ))}
            </ul>
          );
        }}
      </Read>
    </Panel>
  );
}

export function BusyRules({
  latest,
  stats,
  isLive,
}: {
  latest: LiveView | undefined;
  stats: StatsView | undefined;
  isLive: boolean;
}) {
  const rules = isLive ? (latest?.rules ?? []) : (stats?.rules ?? []);
  const isUnknown = isLive ? latest === undefined : !isCounted(stats);
  return (
    <Panel title="Busiest rules" flush actions={<Link href="/rules">All rules</Link>}>
      {rules.length === 0 ? (
        <Empty title={isUnknown ? "Unknown." : isLive ? "No checks in this second." : "No checks in this time."} />
      ) : (
        <ul className="list busy">
          {rules.slice(0, MOST).map(({ rule, allowed, refused }) => (
            <li key={rule}>
              {rule === OTHER_RULES ? (
                <span>rules that are counted together</span>
              ) : (
                <Link href={`/rules/${rule}`} className="mono">
                  {rule}
                </Link>
              )}
              <span className="soft small">
                {isLive ? `${rate(allowed + refused)}/s` : count(allowed + refused)}
                {refused > 0 && `, ${share(refused / (allowed + refused))} refused`}
              </span>
              <GateBar allowed={allowed} refused={refused} />
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

export function StoreHealth({ latest }: { latest: LiveView | undefined }) {
  const store = useQuery(storeQuery);
  // The stream is more recent; the store's view is polled every few seconds.
  const { state, outage } = latest?.store ?? store.data ?? {};
  const isAway = state !== "up" && !outage?.partial;
  return (
    <Panel title="Store" actions={<Link href="/store">Details</Link>}>
      <dl className="pairs">
        <dt>Kind</dt>
        <dd>{store.data?.kind ?? latest?.store.kind ?? "unknown"}</dd>
        <dt>State</dt>
        <dd>
          {state === undefined ? (
            "unknown"
          ) : (
            <span className={`tag ${state === "up" ? "good" : isAway ? "bad" : "warn"}`}>
              <span className="dot" />
              {state === "up" ? "answers" : isAway ? "does not answer" : "answers most calls"}
            </span>
          )}
        </dd>
        {outage !== undefined && (
          <>
            <dt>Why</dt>
            <dd>{outage.cause}</dd>
          </>
        )}
        {store.data !== undefined && (
          <>
            <dt>Calls</dt>
            <dd>
              {count(store.data.calls.total)}, {count(store.data.calls.errors)} failed
            </dd>
            <dt>Latency</dt>
            <dd>
              {milliseconds(store.data.calls.latency.p50Ms)}, p99 {milliseconds(store.data.calls.latency.p99Ms)}
            </dd>
            <dt>Breaker</dt>
            <dd>{store.data.calls.breaker}</dd>
          </>
        )}
      </dl>
    </Panel>
  );
}
