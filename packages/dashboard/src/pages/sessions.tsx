/** Open sessions of the console: one's own, for admins everyone's. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { memo } from "react";
import { queryClient, sessionsQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import type { OpenSessionView } from "../api/shapes.js";
import { dayTime, visible } from "../components/format.js";
import { LongRows } from "../components/long-rows.js";
import { Empty, Panel, ProblemNotice, Read } from "../components/panel.js";

export function Sessions() {
  const sessions = useQuery(sessionsQuery);
  const end = useMutation({
    mutationFn: (id: string) => request(`/sessions/${encodeURIComponent(id)}`, { method: "DELETE" }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey }),
  });
  return (
    <Panel title="Open sessions" about="Of the console. Ending one holds on every instance." flush>
      <Read of={sessions} what="sessions">
        {({ sessions: all }) =>
          all.length === 0 ? (
            <Empty title="None was noted." />
          ) : (
            <table className="cards long sessions" aria-rowcount={all.length + 1}>
              <thead>
                <tr>
                  <th scope="col">Who</th>
                  <th scope="col">Signed in</th>
                  <th scope="col">Ends</th>
                  <th scope="col">Browser</th>
                  <th scope="col">
                    <span className="unseen">End</span>
                  </th>
                </tr>
              </thead>
              <LongRows rows={all} nameOf={nameOf}>
                {(session, name) => <SessionRow key={name} session={session} onEnd={end.mutate} />}
              </LongRows>
            </table>
          )
        }
      </Read>
      {end.error !== null && <ProblemNotice error={end.error} title="Not ended" />}
    </Panel>
  );
}

function nameOf({ id }: OpenSessionView): string {
  return id;
}

interface SessionRowProps {
  readonly session: OpenSessionView;
  readonly onEnd: (id: string) => void;
}

const SessionRow = memo(function SessionRow({ session, onEnd }: SessionRowProps) {
  const { id, name, createdAtMs, endsAtMs, agent, own } = session;
  return (
    <tr>
      <td className="mono break strong">{visible(name)}</td>
      <td data-label="Signed in">{dayTime(createdAtMs)}</td>
      <td data-label="Ends">{dayTime(endsAtMs)}</td>
      <td data-label="Browser" className="soft small break">
        {visible(agent)}
      </td>
      <td className="number">
        {own ? (
          <span className="tag">this one</span>
        ) : (
          <button type="button" className="button small bad" onClick={() => onEnd(id)}>
            End<span className="unseen"> the session of {name}</span>
          </button>
        )}
      </td>
    </tr>
  );
});
