/** Spending: units by rule, the biggest spenders, and usage and cost of language models. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { spendQuery, topKeysQuery } from "../api/queries.js";
import type { SpendRuleView, SpendView, TopKey } from "../api/shapes.js";
import { Choice } from "../components/controls.js";
import { count, share, visible, withUnit } from "../components/format.js";
import { Empty, Page, Panel, Read } from "../components/panel.js";
import { RuleCell } from "../components/rule-tags.js";
import { KeyCells } from "../keys/key-cells.js";
import { TimeBar } from "../range/time-bar.js";
import type { ShownTime } from "../time/time-address.js";
import { useTime } from "../time/use-time.js";
import { Models } from "./models.js";
import { SpentChart } from "./spend-charts.js";

export function SpendPage() {
  const { time } = useTime();
  const spend = useQuery(spendQuery({ time }));
  return (
    <Page
      title="Spend"
      about={
        spend.data?.scope === "instance"
          ? "Of this instance alone: the others cannot be asked."
          : "Units that rules count: tokens, bytes, money."
      }
      actions={<TimeBar />}
    >
      <Read of={spend} what="figures of spending">
        {(view) => <Spend view={view} time={time} />}
      </Read>
    </Page>
  );
}

function Spend({ view, time }: { view: SpendView; time: ShownTime }) {
  const units = [...new Set(view.rules.flatMap(({ unit, spent }) => (spent === undefined ? [] : [unit])))];
  const [chosen, setChosen] = useState<string>();
  const unit = chosen !== undefined && units.includes(chosen) ? chosen : units[0];
  return (
    <>
      {unit === undefined ? (
        <NoUnits />
      ) : (
        <>
          {units.length > 1 && (
            <div className="buttons">
              <Choice
                label="Unit"
                value={unit}
                options={units.map((one) => ({ value: one, label: visible(one) }))}
                onChange={setChosen}
              />
            </div>
          )}
          <ByRule view={view} unit={unit} />
          <Spenders unit={unit} time={time} />
        </>
      )}
      {(view.models.length > 0 || view.prices !== undefined) && <Models view={view} />}
    </>
  );
}

function NoUnits() {
  return (
    <Panel>
      <Empty title="No rule names a unit.">
        <p>
          Give a rule <code>unit: tokens</code> (or <code>bytes</code>, <code>microdollars</code>) beside its{" "}
          <code>cost</code>: what it counts is then shown in that unit, here and everywhere.
        </p>
        <Link href="/rules" className="button">
          All rules
        </Link>
      </Empty>
    </Panel>
  );
}

function ByRule({ view, unit }: { view: SpendView; unit: string }) {
  const rules = view.rules.filter((rule) => rule.unit === unit && rule.spent !== undefined);
  const isCounted = view.steps.some(({ coveredMs }) => coveredMs > 0);
  return (
    <Panel title={`Spent, by rule (${visible(unit)})`}>
      <div className="stack">
        <SpentChart rules={rules} unit={unit} steps={view.steps} />
        <table className="cards">
          <thead>
            <tr>
              <th scope="col">Rule</th>
              <th scope="col" className="number">
                Spent
              </th>
              <th scope="col" className="number">
                Held
              </th>
              <th scope="col" className="number">
                Settled
              </th>
              <th scope="col" className="number">
                Beyond what was held
              </th>
            </tr>
          </thead>
          <tbody>
            {rules.map((rule) => (
              <RuleRow key={rule.rule} rule={rule} isCounted={isCounted} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function RuleRow({ rule, isCounted }: { rule: SpendRuleView; isCounted: boolean }) {
  const { estimate, unit } = rule;
  const shown = (value: number | undefined): string =>
    !isCounted || value === undefined ? "–" : withUnit(value, unit);
  return (
    <tr>
      <RuleCell rule={rule.rule} mode={rule.mode} />
      <td data-label="Spent" className="number">
        {shown(rule.spent)}
      </td>
      <td data-label="Held" className="number">
        {shown(estimate?.held)}
      </td>
      <td data-label="Settled" className="number">
        {shown(estimate?.settled)}
      </td>
      <td data-label="Beyond what was held" className="number">
        {shown(estimate?.overrun)}
        {isCounted && estimate !== undefined && estimate.settled > 0 && (
          <span className="soft small numbers-kind">{share(estimate.overrun / estimate.settled)}</span>
        )}
      </td>
    </tr>
  );
}

function Spenders({ unit, time }: { unit: string; time: ShownTime }) {
  const keys = useQuery(topKeysQuery({ time, by: "spend", unit, limit: 100 }));
  return (
    <Panel
      title="Top spenders"
      about={
        keys.data !== undefined &&
        `${keys.data.scope === "instance" ? "Of this instance alone. " : ""}Figures are at most ${withUnit(keys.data.maxError, unit)} too high, never too low; refunds are not taken off.`
      }
      flush
    >
      <Read of={keys} what="top spenders">
        {(view) =>
          view.keys.length === 0 ? (
            <Empty title="Nobody has spent any yet.">Spending is written every few seconds.</Empty>
          ) : (
            <table className="cards">
              <thead>
                <tr>
                  <th scope="col">Key</th>
                  <th scope="col">Rule</th>
                  <th scope="col" className="number">
                    Spent
                  </th>
                  <th scope="col">Share of the first</th>
                  <th scope="col" className="number">
                    Checks
                  </th>
                </tr>
              </thead>
              <tbody>
                {view.keys.map((key) => (
                  <SpenderRow
                    key={`${key.rule} ${key.digest ?? JSON.stringify(key.attributes)}`}
                    spender={key}
                    unit={unit}
                    most={view.keys[0]!.spent ?? 1}
                  />
                ))}
              </tbody>
            </table>
          )
        }
      </Read>
    </Panel>
  );
}

function SpenderRow({ spender, unit, most }: { spender: TopKey; unit: string; most: number }) {
  const { spent = 0 } = spender;
  const style = { width: `${(spent / most) * 100}%`, "--mark": "var(--latency)" } as React.CSSProperties;
  return (
    <tr>
      <KeyCells {...spender} />
      <td data-label="Spent" className="number nowrap">
        {withUnit(spent, unit)}
      </td>
      <td data-label="Share">
        <span className="peak">
          <span className="meter">
            <i style={style} />
          </span>
          <span className="small">{share(spent / most)}</span>
        </span>
      </td>
      <td data-label="Checks" className="number">
        {spender.count === 0 ? "–" : count(spender.count)}
      </td>
    </tr>
  );
}
