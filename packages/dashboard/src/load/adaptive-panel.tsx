/** A rule with `adapt`: the current limit between its bounds, which instance changed it, and why. */
import { Link } from "wouter";
import type { AdaptiveView, LimitMoveView, LoadView } from "../api/shapes.js";
import { Figure, Figures } from "../components/figures.js";
import { clockTime, count, dayTime, share, span, withUnit } from "../components/format.js";
import { Empty, Panel } from "../components/panel.js";
import { LimitChart, signalNames, TargetChart } from "./load-charts.js";

export function AdaptivePanel({ rule, view }: { rule: AdaptiveView; view: LoadView }) {
  return (
    <Panel
      title={
        <>
          <Link href={`/rules/${rule.rule}`}>{rule.rule}</Link>{" "}
          {rule.mode === "shadow" && <span className="tag warn">shadow: refuses nothing</span>}
        </>
      }
      about={`Its limit moves between ${count(rule.min)} and ${withUnit(rule.max, rule.unit)}, so that utilisation (${rule.signals
        .map((signal) => (signalNames[signal] ?? signal).toLowerCase())
        .join(", ")}) comes to ${share(rule.target)}`}
    >
      <div className="stack">
        <AdaptiveFigures rule={rule} scope={view.scope} />
        <div className="columns even">
          <LimitChart rule={rule} steps={view.steps} />
          <TargetChart rule={rule} steps={view.steps} />
        </div>
        <Moves rule={rule} atMs={view.atMs} />
      </div>
    </Panel>
  );
}

function AdaptiveFigures({ rule, scope }: { rule: AdaptiveView; scope: LoadView["scope"] }) {
  const { now, configured, target } = rule;
  const utilisation = now?.utilisation;
  // The number is in the store; the leader's figures arrive up to a second later, or not at all if it has just ended.
  const last = now?.leader === undefined && scope === "fleet" ? rule.moves.find(({ alone }) => !alone) : undefined;
  return (
    <Figures>
      <Figure label={rule.mode === "shadow" ? "Limit, in shadow" : "Limit in force"} mark="latency">
        {now === undefined ? "–" : withUnit(now.limit, rule.unit)} <small>the rule says {count(configured)}</small>
      </Figure>
      <Figure
        label="Utilisation"
        {...(utilisation !== undefined && { mark: utilisation > target ? ("refused" as const) : ("allowed" as const) })}
      >
        {utilisation === undefined ? "–" : share(utilisation)} <small>target {share(target)}</small>
      </Figure>
      <Figure label="Moved by">
        <span className="mono small break">{now?.leader ?? last?.instance ?? "–"}</span>{" "}
        <small>
          {now?.leader === undefined &&
            (scope === "instance"
              ? "the store is away"
              : last === undefined
                ? "not known now"
                : `at ${clockTime(last.atMs)}; nobody reports to lead now`)}
        </small>
      </Figure>
    </Figures>
  );
}

function Moves({ rule, atMs }: { rule: AdaptiveView; atMs: number }) {
  if (rule.moves.length === 0) return <Empty title="The limit has not moved in the last day." />;
  return (
    <details>
      <summary>
        Last moves ({rule.moves.length === 50 ? "the last 50" : count(rule.moves.length)}), the latest{" "}
        {span(atMs - rule.moves[0]!.atMs)} ago
      </summary>
      <table className="cards">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col" className="number">
              From
            </th>
            <th scope="col" className="number">
              To
            </th>
            <th scope="col">Why</th>
            <th scope="col">By</th>
          </tr>
        </thead>
        <tbody>
          {rule.moves.map((move) => (
            <tr key={`${move.atMs} ${move.instance}`}>
              <td data-label="When" className="nowrap">
                {(atMs - move.atMs < 12 * 3_600_000 ? clockTime : dayTime)(move.atMs)}
              </td>
              <td data-label="From" className="number">
                {count(move.from)}
              </td>
              <td data-label="To" className="number">
                {count(move.to)}
              </td>
              <td data-label="Why">{reasonOf(move, rule.target)}</td>
              <td data-label="By" className="mono small break">
                {move.instance}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function reasonOf({ utilisation, alone }: LimitMoveView, target: number): string {
  if (alone) return "the store was away: back to the rule's own limit, for this instance alone";
  if (utilisation === undefined) return "no utilisation was known: back to the rule's own limit";
  return `utilisation ${share(utilisation)}, ${utilisation > target ? "above" : "below"} ${share(target)}`;
}
