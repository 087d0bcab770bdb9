/** Tables of the store page: memory by rule compared with the prediction, and slow commands of all nodes. */
import { Link } from "wouter";
import type { StoreView } from "../api/shapes.js";
import { bytes, count, dayTime, known, milliseconds } from "../components/format.js";
import { Empty, Panel } from "../components/panel.js";

export function Memory({ view }: { view: StoreView }) {
  const rules = view.memory.byRule;
  const most = Math.max(
    1,
    ...rules.map(({ predictedFullBytes, measuredBytes = 0 }) => Math.max(predictedFullBytes, measuredBytes)),
  );
  return (
    <Panel
      title="Memory by rule"
      about="Measured by sampling; predicted if every key of the last day were at its limit."
      flush
    >
      {rules.length === 0 ? (
        <Empty title={view.memory.predictedFullBytes === undefined ? "Unknown." : "No keys were seen yet."}>
          {view.memory.predictedFullBytes === undefined && whyUnknown(view)}
        </Empty>
      ) : (
        <table className="cards">
          <thead>
            <tr>
              <th scope="col">Rule</th>
              <th scope="col" className="number">
                Keys
              </th>
              <th scope="col" className="number">
                Measured
              </th>
              <th scope="col" className="number">
                At full use
              </th>
              <th scope="col">Measured in predicted</th>
            </tr>
          </thead>
          <tbody>
            {rules.slice(0, 100).map((one) => (
              <tr key={one.rule}>
                <td>
                  <Link href={`/rules/${one.rule}`} className="mono">
                    {one.rule}
                  </Link>
                </td>
                <td data-label="Keys" className="number">
                  {count(one.keys)}
                </td>
                <td data-label="Measured" className="number nowrap">
                  {known(one.measuredBytes, bytes)}
                </td>
                <td data-label="At full use" className="number nowrap">
                  {bytes(one.predictedFullBytes)}
                </td>
                <td data-label="Share">
                  <span className="nested" style={{ width: `${Math.max(1, (one.predictedFullBytes / most) * 100)}%` }}>
                    <i
                      style={{
                        width: `${Math.min(1, (one.measuredBytes ?? 0) / Math.max(1, one.predictedFullBytes)) * 100}%`,
                      }}
                    />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function whyUnknown({ kind }: StoreView): string {
  return kind === "memory" ? "The memory store does not measure its counters." : "No node answers.";
}

export function SlowCalls({ view }: { view: StoreView }) {
  const slow = view.nodes
    .flatMap(({ address, slow: calls = [] }) => calls.map((call) => ({ address, ...call })))
    .sort((a, b) => b.atMs - a.atMs);
  const hasAnswered = view.nodes.some(({ state }) => state === "up");
  if (view.nodes.length === 0) return null;
  return (
    <Panel title="Slow calls" flush>
      {slow.length === 0 ? (
        <Empty title={hasAnswered ? "None." : "Unknown."}>
          {hasAnswered ? "No node has kept a slow call." : "No node answers."}
        </Empty>
      ) : (
        <table className="cards">
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">Node</th>
              <th scope="col" className="number">
                Took
              </th>
              <th scope="col">Call</th>
            </tr>
          </thead>
          <tbody>
            {slow.slice(0, 30).map((call) => (
              <tr key={`${call.address} ${call.atMs} ${call.command}`}>
                <td className="nowrap">{dayTime(call.atMs)}</td>
                <td data-label="Node" className="mono">
                  {call.address}
                </td>
                <td data-label="Took" className="number nowrap">
                  {milliseconds(call.tookMs)}
                </td>
                <td className="mono break">{call.command}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}
