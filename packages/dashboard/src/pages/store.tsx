/** The store: its nodes and their slots, memory as measured and as predicted at full use, and slow commands. */
import { useQuery } from "@tanstack/react-query";
import { storeQuery } from "../api/queries.js";
import type { StoreNode, StoreView } from "../api/shapes.js";
import { Figure, Figures } from "../components/figures.js";
import { bytes, clockTime, count, known, milliseconds } from "../components/format.js";
import { Empty, Notice, Page, Panel, Read } from "../components/panel.js";
import { SlotMap } from "./slot-map.js";
import { Memory, SlowCalls } from "./store-tables.js";

export function StorePage() {
  const store = useQuery(storeQuery);
  return (
    <Page title="Store" about="Where counters live, as this instance sees it.">
      <Read of={store} what="figures of the store">
        {(view) => (
          <>
            {view.outage !== undefined && !view.outage.partial && (
              <Notice tone="bad" title="It does not answer.">
                Since {clockTime(view.outage.sinceMs)}: {view.outage.cause}. Until it does, each rule's failure policy
                answers, and what its counters hold is unknown.
              </Notice>
            )}
            <Summary view={view} />
            {view.nodes.some(({ slots }) => slots !== undefined) && <SlotMap nodes={view.nodes} />}
            <Nodes view={view} />
            <Memory view={view} />
            <SlowCalls view={view} />
          </>
        )}
      </Read>
    </Page>
  );
}

function Summary({ view }: { view: StoreView }) {
  const { calls, memory } = view;
  const isAway = view.state !== "up" && !view.outage?.partial;
  return (
    <Figures>
      <Figure label={view.kind} mark={isAway ? "refused" : "allowed"}>
        {isAway ? "away" : "answers"}
      </Figure>
      <Figure label="Calls">
        {count(calls.total)} <small>{count(calls.errors)} failed</small>
      </Figure>
      <Figure label="Median latency" mark="latency">
        {milliseconds(calls.latency.p50Ms)} <small>p99 {milliseconds(calls.latency.p99Ms)}</small>
      </Figure>
      <Figure label="Breaker" {...(calls.breaker === "open" && { mark: "refused" as const })}>
        {calls.breaker}
      </Figure>
      <Figure label="Counters">
        {view.keysInMemory !== undefined
          ? count(view.keysInMemory)
          : memory.measuredBytes === undefined
            ? "unknown"
            : bytes(memory.measuredBytes)}{" "}
        <small>
          {view.keysInMemory !== undefined
            ? "in this process"
            : memory.predictedFullBytes !== undefined && `at full use ${bytes(memory.predictedFullBytes)}`}
        </small>
      </Figure>
    </Figures>
  );
}

function Nodes({ view }: { view: StoreView }) {
  if (view.nodes.length === 0 && view.kind !== "memory") {
    return (
      <Panel title="Nodes">
        <Empty title="Unknown.">No node could be asked.</Empty>
      </Panel>
    );
  }
  if (view.nodes.length === 0) {
    return (
      <Panel title="Nodes">
        <Empty title="Counters live in the memory of this process.">
          Give the service a Redis with --store to share them.
        </Empty>
      </Panel>
    );
  }
  return (
    <Panel title="Nodes" flush>
      <table className="cards">
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">Role</th>
            <th scope="col">Memory</th>
            <th scope="col" className="number">
              Keys
            </th>
            <th scope="col" className="number">
              Calls/s
            </th>
            <th scope="col" className="number">
              Evicted
            </th>
            <th scope="col" className="number">
              Clients
            </th>
            <th scope="col">Lag</th>
            <th scope="col" className="number">
              Ping
            </th>
          </tr>
        </thead>
        <tbody>
          {view.nodes.map((node) => (
            <NodeRow key={node.address} node={node} />
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function NodeRow({ node }: { node: StoreNode }) {
  return (
    <tr>
      <td>
        <span className="mono">{node.address}</span>{" "}
        <span className={`tag ${node.state === "up" ? "good" : "bad"}`}>{node.state}</span>
        {node.version !== undefined && <span className="soft small node-version">Redis {node.version}</span>}
      </td>
      <td data-label="Role">
        <span>
          {node.role}
          {node.leaderAddress !== undefined && <span className="soft small node-version">of {node.leaderAddress}</span>}
        </span>
      </td>
      <td data-label="Memory">
        <span>
          {known(node.usedBytes, bytes)}
          {node.maxBytes !== undefined && node.maxBytes > 0 && (
            <span className="soft small node-version">
              of {bytes(node.maxBytes)}, {node.maxMemoryPolicy}
            </span>
          )}
        </span>
      </td>
      <td data-label="Keys" className="number">
        {known(node.keys, count)}
      </td>
      <td data-label="Calls/s" className="number">
        {known(node.opsPerSecond, count)}
      </td>
      <td data-label="Evicted" className="number">
        {known(node.evictedKeys, count)}
      </td>
      <td data-label="Clients" className="number">
        {known(node.connectedClients, count)}
      </td>
      <td data-label="Lag">{known(node.replicationLagBytes, bytes)}</td>
      <td data-label="Ping" className="number nowrap">
        {known(node.pingMs, milliseconds)}
      </td>
    </tr>
  );
}
