/** A rule with `estimate`: held units against settled ones, and the real cost of its requests. */
import { useQuery } from "@tanstack/react-query";
import { spendQuery } from "../api/queries.js";
import type { EstimateView, LearnedView } from "../api/shapes.js";
import { Figure, Figures } from "../components/figures.js";
import { count, share, withUnit } from "../components/format.js";
import { Empty, Panel, Read } from "../components/panel.js";
import { useTime } from "../time/use-time.js";
import { EstimateChart, SpentChart } from "./spend-charts.js";

/** For a single rule, on its page. */
export function RuleSpend({ rule }: { rule: string }) {
  const { time } = useTime();
  const spend = useQuery(spendQuery({ time, rule }));
  const own = spend.data?.rules[0];
  return (
    <Panel
      title={own?.estimate === undefined ? "Units spent" : "Estimate against actual"}
      about={
        own?.estimate !== undefined && "A check holds an estimate; when the work is done, the real cost is settled"
      }
    >
      <Read of={spend} what="figures of spending">
        {(view) => {
          const [one] = view.rules;
          if (one === undefined) return <Empty title="The rule counts requests." />;
          const isCounted = view.steps.some(({ coveredMs }) => coveredMs > 0);
          return (
            <div className="stack">
              {view.scope === "instance" && (
                <p className="soft small">Of this instance alone: others cannot be asked.</p>
              )}
              {one.estimate === undefined ? (
                <SpentChart rules={view.rules} unit={one.unit} steps={view.steps} />
              ) : (
                <>
                  <EstimateFigures estimate={one.estimate} unit={one.unit} isCounted={isCounted} />
                  <EstimateChart estimate={one.estimate} unit={one.unit} steps={view.steps} />
                  <Learned learned={one.estimate.learned} unit={one.unit} />
                </>
              )}
            </div>
          );
        }}
      </Read>
    </Panel>
  );
}

function EstimateFigures({ estimate, unit, isCounted }: { estimate: EstimateView; unit: string; isCounted: boolean }) {
  const { held, settled, overrun } = estimate;
  const shown = (value: number): string => (isCounted ? withUnit(value, unit) : "–");
  return (
    <Figures>
      <Figure label="Held" mark="candidate">
        {shown(held)}
      </Figure>
      <Figure label="Settled" mark="latency">
        {shown(settled)} <small>{isCounted && held > 0 && `${share(settled / held)} of what was held`}</small>
      </Figure>
      <Figure label="Beyond what was held" mark="refused">
        {shown(overrun)} <small>{isCounted && settled > 0 && `${share(overrun / settled)} of what was settled`}</small>
      </Figure>
    </Figures>
  );
}

function Learned({ learned, unit }: { learned: readonly LearnedView[] | undefined; unit: string }) {
  if (learned === undefined) {
    return <Empty title="What was learned is unknown.">The store, which keeps it, does not answer.</Empty>;
  }
  return (
    <table className="cards">
      <caption className="unseen">What requests really cost</caption>
      <thead>
        <tr>
          <th scope="col">Keys</th>
          <th scope="col" className="number">
            Settled costs
          </th>
          <th scope="col" className="number">
            Half cost at most
          </th>
          <th scope="col" className="number">
            90 %
          </th>
          <th scope="col" className="number">
            99 %
          </th>
          <th scope="col" className="number">
            Held for the next
          </th>
        </tr>
      </thead>
      <tbody>
        {learned.map((one) => (
          <LearnedRow key={one.keyClass} one={one} unit={unit} />
        ))}
      </tbody>
    </table>
  );
}

function LearnedRow({ one, unit }: { one: LearnedView; unit: string }) {
  const cell = (value: number | undefined): string => (value === undefined ? "–" : withUnit(value, unit));
  return (
    <tr>
      <td>{one.keyClass === "" ? "the rule's" : <span className="mono small">override {one.keyClass}</span>}</td>
      <td data-label="Settled costs" className="number">
        {count(one.requests)}
      </td>
      <td data-label="Half cost at most" className="number">
        {cell(one.p50)}
      </td>
      <td data-label="90 %" className="number">
        {cell(one.p90)}
      </td>
      <td data-label="99 %" className="number">
        {cell(one.p99)}
      </td>
      <td data-label="Held for the next" className="number">
        <span>
          {withUnit(one.learned ?? one.default, unit)}
          <span className="soft small numbers-kind">
            {one.learned === undefined ? "the default: too little is known" : `learned, ${share(one.quantile)}`}
          </span>
        </span>
      </td>
    </tr>
  );
}
