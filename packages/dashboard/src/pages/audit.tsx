/** The audit log of administration, newest first. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { auditQuery } from "../api/queries.js";
import type { AuditFilter } from "../api/shapes.js";
import { Search } from "../components/controls.js";
import { dayTime, fieldValue, visible } from "../components/format.js";
import { Older, usePages } from "../components/pagination.js";
import { Empty, Page, Panel, Read } from "../components/panel.js";

const actions: Readonly<Record<string, string>> = {
  "rules.changed": "changed rules",
  "key.reset": "reset a key",
  "key.block": "blocked a key",
  "token.created": "made a token",
  "token.deleted": "deleted a token",
  "alerts.changed": "changed the alert policy",
  "alerts.silenced": "silenced alerts",
  "alerts.unsilenced": "ended a silence",
  "alerts.tested": "tested a receiver",
  "alert.acknowledged": "acknowledged an alert",
  "session.ended": "ended a session",
  "session.opened": "signed in",
};

export function AuditPage() {
  const [asked, setAsked] = useState<AuditFilter>({});
  const filter = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== ""));
  return (
    <Page title="Audit" about="Changes of rules and alerts, key resets, tokens and sessions, with their authors.">
      <Filters filter={filter} asked={asked} onAsk={setAsked} />
      {/* Another filter begins at its newest entry. */}
      <Entries key={JSON.stringify(filter)} filter={filter} />
    </Page>
  );
}

interface Filtered {
  readonly filter: AuditFilter;
  readonly asked: AuditFilter;
  readonly onAsk: (asked: AuditFilter) => void;
}

function Filters({ asked, onAsk, filter }: Filtered) {
  const set = (name: keyof AuditFilter) => (value: string) => onAsk({ ...asked, [name]: value });
  // Both days are among those shown.
  const clock = { from: "T00:00:00Z", to: "T23:59:59.999Z" };
  const day = (name: "from" | "to", label: string) => (
    <label className="filter">
      {label}{" "}
      <input
        type="date"
        className="input"
        value={asked[name]?.slice(0, 10) ?? ""}
        onChange={(event) => set(name)(event.target.value === "" ? "" : event.target.value + clock[name])}
      />
    </label>
  );
  const href = (format: string): string => `/admin/v1/audit/export?${new URLSearchParams({ ...filter, format })}`;
  return (
    <div className="toolbar">
      <Search label="Author" value={asked.actor ?? ""} onChange={set("actor")} />
      <Search label="Rule" value={asked.rule ?? ""} onChange={set("rule")} />
      {day("from", "From (UTC)")}
      {day("to", "Until (UTC)")}
      <div className="buttons">
        <a className="button small" href={href("csv")} download>
          CSV
        </a>
        <a className="button small" href={href("json")} download>
          JSON
        </a>
      </div>
    </div>
  );
}

function Entries({ filter }: { filter: AuditFilter }) {
  const pages = usePages();
  const isFiltered = Object.values(filter).some((value) => value !== undefined && value !== "");
  const audit = useQuery({
    ...auditQuery(pages.before, filter),
    refetchInterval: pages.before === undefined ? 10_000 : false,
  });
  return (
    <Panel flush>
      <Read of={audit} what="audit">
        {({ entries, next }) => (
          <>
            {entries.length === 0 ? (
              <Empty title={isFiltered ? "No entry fits the filter." : "Nothing was done yet."} />
            ) : (
              <table className="cards">
                <thead>
                  <tr>
                    <th scope="col">When</th>
                    <th scope="col">Author</th>
                    <th scope="col">Action</th>
                    <th scope="col">Object</th>
                    <th scope="col">Details</th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map((entry) => (
                    <tr key={entry.id}>
                      <td className="nowrap">{dayTime(entry.at)}</td>
                      <td data-label="Author" className="break">
                        {visible(entry.actor)}
                      </td>
                      <td data-label="Action">{actions[entry.action] ?? entry.action}</td>
                      <td data-label="Object" className="mono break">
                        {visible(entry.target)}
                      </td>
                      <td className="soft small break">
                        {Object.entries(entry.details)
                          .filter(([, value]) => value !== "" && value !== 0)
                          .map(([name, value]) => `${name}: ${fieldValue(value)}`)
                          .join(", ")}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            <Older pages={pages} next={next} />
          </>
        )}
      </Read>
    </Panel>
  );
}
