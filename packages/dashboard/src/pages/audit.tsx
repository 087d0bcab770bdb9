/** The audit log, newest first, filtered by the URL. */
import { useQuery } from "@tanstack/react-query";
import { memo } from "react";
import { auditQuery } from "../api/queries.js";
import type { AuditFilter, AuditView } from "../api/shapes.js";
import { Search } from "../components/controls.js";
import { dayTime, fieldValue, visible } from "../components/format.js";
import { LongRows } from "../components/long-rows.js";
import { Older, usePages } from "../components/pagination.js";
import { Empty, Page, Panel, Read } from "../components/panel.js";
import { useParameters } from "../time/use-parameters.js";
import { type AuditQuery, auditFilter, auditQueryIn } from "./audit-address.js";

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
  const { search, set } = useParameters();
  const asked = auditQueryIn(search);
  const filter = auditFilter(asked);
  return (
    <Page title="Audit" about="Changes of rules and alerts, key resets, tokens and sessions, with their authors.">
      {/* Typing replaces the current history entry. */}
      <Filters filter={filter} asked={asked} onAsk={(changes) => set(changes, { replace: true })} />
      {/* A new filter starts at its newest entry. */}
      <Entries key={JSON.stringify(filter)} filter={filter} />
    </Page>
  );
}

interface Filtered {
  readonly filter: AuditFilter;
  readonly asked: AuditQuery;
  readonly onAsk: (changes: Partial<AuditQuery>) => void;
}

function Filters({ asked, onAsk, filter }: Filtered) {
  const day = (name: "since" | "until", label: string) => (
    <label className="filter">
      {label}{" "}
      <input
        type="date"
        className="input"
        value={asked[name]}
        onChange={(event) => onAsk({ [name]: event.target.value })}
      />
    </label>
  );
  const href = (format: string): string => `/admin/v1/audit/export?${new URLSearchParams({ ...filter, format })}`;
  return (
    <div className="toolbar">
      <Search label="Author" value={asked.author} onChange={(author) => onAsk({ author })} />
      <Search label="Rule" value={asked.rule} onChange={(rule) => onAsk({ rule })} />
      {day("since", "From (UTC)")}
      {day("until", "Until (UTC)")}
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
              <table className="cards long audit" aria-rowcount={entries.length + 1}>
                <thead>
                  <tr>
                    <th scope="col">When</th>
                    <th scope="col">Author</th>
                    <th scope="col">Action</th>
                    <th scope="col">Object</th>
                    <th scope="col">Details</th>
                  </tr>
                </thead>
                <LongRows rows={entries} nameOf={nameOf}>
                  {(entry, name) => <EntryRow key={name} entry={entry} />}
                </LongRows>
              </table>
            )}
            <Older pages={pages} next={next} />
          </>
        )}
      </Read>
    </Panel>
  );
}

type Entry = AuditView["entries"][number];

function nameOf({ id }: Entry): string {
  return String(id);
}

const EntryRow = memo(function EntryRow({ entry }: { entry: Entry }) {
  return (
    <tr>
      <td className="nowrap">{dayTime(entry.at)}</td>
      <td data-label="Author" className="break">
        {visible(entry.actor)}
      </td>
      <td data-label="Action" className="break">
        {actions[entry.action] ?? entry.action}
      </td>
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
  );
});
