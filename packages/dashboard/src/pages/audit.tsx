/** The audit log of administration, newest first. */
import { useQuery } from "@tanstack/react-query";
import { auditQuery } from "../api/queries.js";
import { dayTime, fieldValue } from "../components/format.js";
import { Older, usePages } from "../components/pagination.js";
import { Empty, Page, Panel, Read } from "../components/panel.js";

const actions: Readonly<Record<string, string>> = {
  "rules.changed": "changed rules",
  "key.reset": "reset a key",
  "key.block": "blocked a key",
  "token.created": "made a token",
  "token.deleted": "deleted a token",
};

export function AuditPage() {
  const pages = usePages();
  const audit = useQuery({ ...auditQuery(pages.before), refetchInterval: pages.before === undefined ? 10_000 : false });
  return (
    <Page title="Audit" about="Changes of rules, key resets, tokens made and deleted, with their authors.">
      <Panel flush>
        <Read of={audit} what="audit">
          {({ entries, next }) => (
            <>
              {entries.length === 0 ? (
                <Empty title="Nothing was done yet." />
              ) : (
                <table className="cards">
                  <thead>
                    <tr>
                      <th scope="col">When</th>
                      <th scope="col">Author</th>
                      <th scope="col">Did</th>
                      <th scope="col">Action</th>
                      <th scope="col">Details</th>
                    </tr>
                  </thead>
                  <tbody>
                    {entries.map((entry) => (
                      <tr key={entry.id}>
                        <td className="nowrap">{dayTime(entry.at)}</td>
                        <td data-label="Author" className="break">
                          {entry.actor}
                        </td>
                        <td data-label="Did">{actions[entry.action] ?? entry.action}</td>
                        <td data-label="Action" className="mono break">
                          {entry.target}
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
    </Page>
  );
}
