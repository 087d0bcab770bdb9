/** Requests waiting for a turn, by rule and by key. */
import type { LoadView, WaitingKeyView, WaitingView } from "../api/shapes.js";
import { count, wait } from "../components/format.js";
import { Empty, Panel } from "../components/panel.js";
import { RuleCell } from "../components/rule-tags.js";
import { KeyCells } from "../keys/key-cells.js";
import { WaitChart } from "./load-charts.js";

export function WaitingPanel({ view }: { view: LoadView }) {
  const isCounted = view.steps.some(({ coveredMs }) => coveredMs > 0);
  return (
    <Panel
      title="Waiting for a turn"
      about={
        view.scope === "instance"
          ? "In this instance; the others cannot be asked"
          : "Requests that wait in the service now, and turns that were booked in this time, also by callers that wait themselves"
      }
      flush
    >
      <table className="cards">
        <thead>
          <tr>
            <th scope="col">Rule</th>
            <th scope="col" className="number">
              {view.scope === "instance" ? "Waiting here" : "Waiting now"}
            </th>
            <th scope="col" className="number">
              Turns booked
            </th>
            <th scope="col" className="number">
              Mean wait
            </th>
            <th scope="col" className="number">
              Longest allowed
            </th>
          </tr>
        </thead>
        <tbody>
          {view.waiting.map((rule) => (
            <WaitingRow key={rule.rule} rule={rule} isCounted={isCounted} />
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function WaitingRow({ rule, isCounted }: { rule: WaitingView; isCounted: boolean }) {
  return (
    <tr>
      <RuleCell rule={rule.rule} mode={rule.mode} />
      <td data-label="Waiting now" className="number">
        {count(rule.now)}
      </td>
      <td data-label="Turns booked" className="number">
        {isCounted ? count(rule.turns) : "–"}
      </td>
      <td data-label="Mean wait" className="number">
        {rule.meanWaitMs === undefined ? "–" : wait(rule.meanWaitMs)}
      </td>
      <td data-label="Longest allowed" className="number">
        {rule.maxWait}
      </td>
    </tr>
  );
}

export function WaitsOfRule({ rule, view }: { rule: WaitingView; view: LoadView }) {
  return (
    <Panel
      title="How long requests wait"
      about={`${count(rule.now)} wait in ${view.scope === "instance" ? "this instance" : "the service"} now`}
    >
      <WaitChart rule={rule} steps={view.steps} />
    </Panel>
  );
}

export function WaitingKeys({ view }: { view: LoadView }) {
  const { waitingKeys: keys, moreKeys } = view;
  if (keys.length === 0) {
    return (
      <Panel title="Who waits now">
        {view.scope === "instance" ? (
          <Empty title="Nobody waits in this instance.">Who waits in the others is unknown.</Empty>
        ) : (
          <Empty title="Nobody waits in the service now.">
            Callers of POST /v1/check wait by themselves, and are not seen here.
          </Empty>
        )}
      </Panel>
    );
  }
  return (
    <Panel title={`Who waits now (${moreKeys ? "at least " : ""}${count(keys.length)})`} flush>
      <table className="cards">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Rule</th>
            <th scope="col" className="number">
              Requests
            </th>
            <th scope="col" className="number">
              First has waited
            </th>
            <th scope="col" className="number">
              Last turn in
            </th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <KeyRow key={`${key.rule} ${JSON.stringify(key.attributes)}`} waiting={key} />
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function KeyRow({ waiting }: { waiting: WaitingKeyView }) {
  return (
    <tr>
      <KeyCells {...waiting} />
      <td data-label="Requests" className="number">
        {count(waiting.waiting)}
      </td>
      <td data-label="First has waited" className="number">
        {wait(waiting.longestMs)}
      </td>
      <td data-label="Last turn in" className="number">
        {wait(waiting.lastTurnMs)}
      </td>
    </tr>
  );
}
