/** A load-shedding rule: utilisation by signal, places, and traffic by class. */
import { Link } from "wouter";
import type { LoadView, SheddingView } from "../api/shapes.js";
import { Figure, Figures, GateBar } from "../components/figures.js";
import { count, share, visible } from "../components/format.js";
import { Panel } from "../components/panel.js";
import { ShedChart, signalNames, UtilisationChart } from "./load-charts.js";

export function SheddingPanel({ rule, view }: { rule: SheddingView; view: LoadView }) {
  const isCounted = view.steps.some(({ coveredMs }) => coveredMs > 0);
  return (
    <Panel
      title={
        <>
          <Link href={`/rules/${rule.rule}`}>{rule.rule}</Link>{" "}
          {rule.mode === "shadow" && <span className="tag warn">shadow: sheds nothing</span>}
        </>
      }
      about="Sheds load: what each class got, and how busy the servers are"
    >
      <div className="stack">
        <SheddingFigures rule={rule} scope={view.scope} />
        <Classes rule={rule} isCounted={isCounted} />
        <div className="columns even">
          <div>
            <h3>Utilisation</h3>
            <UtilisationChart rule={rule} steps={view.steps} />
          </div>
          <div>
            <h3>{rule.mode === "shadow" ? "Would be shed, by class" : "Shed, by class"}</h3>
            <ShedChart rule={rule} steps={view.steps} />
          </div>
        </div>
      </div>
    </Panel>
  );
}

function SheddingFigures({ rule, scope }: { rule: SheddingView; scope: LoadView["scope"] }) {
  const { now, signals, isEstimated } = rule;
  return (
    <Figures>
      {signals.map((signal) => {
        const value = now?.utilisation[signal];
        return (
          <Figure key={signal} label={signalNames[signal] ?? signal} {...(value !== undefined && markOf(value))}>
            {value === undefined ? "–" : share(value)}{" "}
            <small>
              {value === undefined
                ? "not known now"
                : scope === "instance"
                  ? "of this instance"
                  : "of the busiest instance"}
            </small>
          </Figure>
        );
      })}
      {signals.includes("inflight") && (
        <Figure label="Requests in flight">
          {now?.inFlight === undefined ? "–" : count(now.inFlight)}{" "}
          <small>
            {now?.places !== undefined && `of ${count(now.places)} places${isEstimated ? ", estimated" : ""}`}
          </small>
        </Figure>
      )}
    </Figures>
  );
}

function markOf(utilisation: number): { mark: "allowed" | "shadow" | "refused" } {
  return { mark: utilisation >= 1 ? "refused" : utilisation >= 0.8 ? "shadow" : "allowed" };
}

function Classes({ rule, isCounted }: { rule: SheddingView; isCounted: boolean }) {
  const shown = (value: number): string => (isCounted ? count(value) : "–");
  return (
    <table className="cards">
      <caption className="unseen">What each class got under {rule.rule}</caption>
      <thead>
        <tr>
          <th scope="col">Class</th>
          <th scope="col" className="number">
            Shed from
          </th>
          <th scope="col" className="number">
            Passed
          </th>
          <th scope="col" className="number">
            Shed
          </th>
          <th scope="col">Passed and shed</th>
        </tr>
      </thead>
      <tbody>
        {rule.classes.map(({ name, threshold, passed, shed }) => (
          <tr key={name}>
            <th scope="row" className="break">
              {visible(name)}
            </th>
            <td data-label="Shed from" className="number">
              {share(threshold)}
            </td>
            <td data-label="Passed" className="number">
              {shown(passed)}
            </td>
            <td data-label="Shed" className="number">
              {shown(shed)}
            </td>
            <td data-label="Passed and shed">
              {isCounted ? <GateBar allowed={passed} refused={shed} isShadow={rule.mode === "shadow"} /> : "unknown"}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
