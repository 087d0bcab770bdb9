/** The cluster's 16 384 slots as a strip, with each leader's ranges; replicas are listed below their leader. */
import type { StoreNode } from "../api/shapes.js";
import { count } from "../components/format.js";
import { Panel } from "../components/panel.js";
import { rangesOf, SLOTS, uncovered } from "./slot-ranges.js";

export function SlotMap({ nodes }: { nodes: readonly StoreNode[] }) {
  const leaders = nodes.filter(({ role }) => role === "leader");
  const ranges = rangesOf(leaders);
  const missing = uncovered(ranges);
  return (
    <Panel
      title="Cluster map"
      about={
        missing === 0
          ? `All ${count(SLOTS)} slots have a leader.`
          : `${count(missing)} of ${count(SLOTS)} slots have no leader.`
      }
    >
      <svg
        className="slots"
        viewBox={`0 0 ${SLOTS} 100`}
        preserveAspectRatio="none"
        role="img"
        aria-label="Slots by leader"
      >
        {ranges.map(({ from, to, leader }) => (
          <rect key={from} x={from} y="0" width={to - from + 1} height="100" className={`leader-${leader % 6}`}>
            <title>{`${from} to ${to}: ${leaders[leader]!.address}`}</title>
          </rect>
        ))}
      </svg>
      <ul className="leaders">
        {leaders.map((leader, i) => (
          <li key={leader.address} className={`leader-${i % 6}`}>
            <span className="mono strong">{leader.address}</span>{" "}
            <span className={`tag ${leader.state === "up" ? "good" : "bad"}`}>{leader.state}</span>
            <span className="soft small break">{(leader.slots ?? []).join(", ") || "no slots"}</span>
            {nodes
              .filter(({ leaderAddress }) => leaderAddress === leader.address)
              .map((replica) => (
                <span key={replica.address} className="small replica">
                  <span className="mono">{replica.address}</span>{" "}
                  <span className={`tag ${replica.state === "up" ? "" : "bad"}`}>replica, {replica.state}</span>
                </span>
              ))}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
