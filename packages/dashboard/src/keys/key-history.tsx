/** One key over time, by rule, and its last refusals. Key data is bounded: the page states what it does not know. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "wouter";
import { keyHistoryQuery } from "../api/queries.js";
import type { KeyView } from "../api/shapes.js";
import { Chart, type Line } from "../components/chart.js";
import { AttributeList, type Mark } from "../components/figures.js";
import { clockTime, count, dayTime, shortCount, span } from "../components/format.js";
import { Empty, Panel, Read } from "../components/panel.js";
import { useTime } from "../time/use-time.js";

const marks: readonly Mark[] = ["allowed", "latency", "candidate", "shadow"];
/** At most one line per colour. */
const MOST_LINES = marks.length;

export function KeyHistory({ attributes }: { attributes: Readonly<Record<string, string>> }) {
  const { time } = useTime();
  const history = useQuery(keyHistoryQuery(attributes, time));
  return (
    <Read of={history} what="history of the key">
      {(view) => (
        <>
          <Panel
            title="Traffic by rule"
            about={`${view.scope === "instance" ? "Of this instance alone. " : ""}By ${span(view.periodMs)}, from the tables of the busiest keys: a key that came seldom is not in them. Two days are kept.`}
          >
            <KeyChart view={view} />
          </Panel>
          <Panel title="Last refusals" about={aboutRefusals(view)} flush>
            <Refusals view={view} />
          </Panel>
        </>
      )}
    </Read>
  );
}

function KeyChart({ view: { periods, rules } }: { view: KeyView }) {
  const timesMs = useMemo(() => periods.map(({ atMs }) => atMs), [periods]);
  const lines = useMemo<Line[]>(() => {
    const total = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0);
    const busiest = [...rules].sort((a, b) => total(b.checks) - total(a.checks)).slice(0, MOST_LINES);
    const known = (values: readonly number[]) => values.map((value, i) => (periods[i]!.isKnown ? value : null));
    return [
      ...busiest.map(({ rule, checks }, i): Line => ({ mark: marks[i]!, label: rule, values: known(checks) })),
      {
        mark: "refused",
        label: "Refused, all rules",
        values: known(periods.map((_, i) => rules.reduce((sum, { refused }) => sum + refused[i]!, 0))),
        isArea: true,
      },
    ];
  }, [periods, rules]);
  if (rules.length === 0) return <Empty title="Not among the busiest keys of this time." />;
  return (
    <Chart
      label="Checks of this key"
      timesMs={timesMs}
      lines={lines}
      format={count}
      axisFormat={shortCount}
      height={180}
    />
  );
}

function aboutRefusals({ refusalValues }: KeyView): string {
  if (refusalValues === "off") return "The log of refusals is off (--refusal-log).";
  const hidden = refusalValues === "hidden" ? " Values are hidden by a setting." : "";
  return `A sample: at most one a second, the last five of each quarter hour, for six hours.${hidden}`;
}

function Refusals({ view: { refusals, refusalValues } }: { view: KeyView }) {
  if (refusals.length === 0) {
    return <Empty title={refusalValues === "off" ? "Nothing is kept." : "None was refused in the last six hours."} />;
  }
  return (
    <table className="cards">
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Rule</th>
          <th scope="col">Reason</th>
          <th scope="col">Attributes</th>
        </tr>
      </thead>
      <tbody>
        {refusals.map((refusal, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two of one rule may come in the same millisecond.
          <tr key={`${refusal.atMs} ${refusal.rule} ${i}`}>
            <td className="nowrap" title={dayTime(refusal.atMs)}>
              {clockTime(refusal.atMs)}
            </td>
            <td data-label="Rule" className="rule-cell">
              <Link href={`/rules/${refusal.rule}`} className="mono">
                {refusal.rule}
              </Link>
            </td>
            <td data-label="Reason">{refusal.reason}</td>
            <td data-label="Attributes">
              <AttributeList attributes={refusal.attributes} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
