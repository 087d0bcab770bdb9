/** The keys with the most requests or refusals, of all instances together. Counts come from a bounded sketch, whose error is stated. */
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { topKeysQuery } from "../api/queries.js";
import type { TopKey, TopKeysView } from "../api/shapes.js";
import { Choice, Search } from "../components/controls.js";
import { GateBar } from "../components/figures.js";
import { count, share } from "../components/format.js";
import { Empty, Page, Panel, Read } from "../components/panel.js";
import { KeyCells } from "../keys/key-cells.js";
import { TimeBar } from "../range/time-bar.js";
import { keysWindow } from "../time/time-address.js";
import { useTime } from "../time/use-time.js";

const orders = [
  { value: "traffic", label: "By traffic" },
  { value: "refusals", label: "By refusals" },
] as const;

export function TopKeysPage() {
  const { time } = useTime();
  const window = keysWindow(time);
  const [by, setBy] = useState<"traffic" | "refusals">("traffic");
  const [search, setSearch] = useState("");
  const words = useDeferredValue(search.trim());
  const keys = useQuery(topKeysQuery({ window, by, limit: 100, ...(words !== "" && { search: words }) }));
  return (
    <Page
      title="Top keys"
      about={
        keys.data === undefined
          ? "The keys with the most requests, and with the most refusals."
          : `${ofWhom(keys.data)} No count is more than ${count(keys.data.maxError)} too high, and none is too low.`
      }
      actions={
        <>
          <Choice label="Order" value={by} options={orders} onChange={setBy} />
          <TimeBar />
        </>
      }
    >
      <Search label="Search keys" placeholder="Search by rule or value …" value={search} onChange={setSearch} />
      <Panel flush>
        <Read of={keys} what="top keys">
          {(view) =>
            view.keys.length === 0 ? (
              <Empty title="No keys.">
                {words === "" ? "Nothing was counted in this time." : "None contains that text."}
              </Empty>
            ) : (
              <KeyTable keys={view.keys} />
            )
          }
        </Read>
      </Panel>
    </Page>
  );
}

function ofWhom({ scope, window }: TopKeysView): string {
  if (scope === "fleet") return "Of all instances.";
  return `Of this instance alone, in the ${window === "hour" ? "quarter hour" : "hour"} that lasts: others cannot be asked.`;
}

export function KeyTable({ keys }: { keys: readonly TopKey[] }) {
  return (
    <table className="cards">
      <thead>
        <tr>
          <th scope="col">Key</th>
          <th scope="col">Rule</th>
          <th scope="col" className="number">
            Checks
          </th>
          <th scope="col" className="number">
            Refused
          </th>
          <th scope="col">Passed and refused</th>
          <th scope="col">Peak use</th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr key={`${key.rule} ${JSON.stringify(key.attributes)}`}>
            <KeyCells {...key} />
            <td data-label="Checks" className="number">
              {count(key.count)}
            </td>
            <td data-label="Refused" className="number">
              {count(key.refused)}
            </td>
            <td data-label="Passed">
              <GateBar allowed={Math.max(0, key.count - key.refused)} refused={key.refused} />
            </td>
            <td data-label="Peak use">
              <Peak share={key.peakUtilisation} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Peak({ share: used }: { share: number }) {
  const mark = used >= 0.9 ? "refused" : used >= 0.7 ? "shadow" : "allowed";
  const style = { width: `${Math.min(1, used) * 100}%`, "--mark": `var(--${mark})` } as React.CSSProperties;
  return (
    <span className="peak">
      <span className="meter">
        <i style={style} />
      </span>
      <span className="small">{share(used)}</span>
    </span>
  );
}
