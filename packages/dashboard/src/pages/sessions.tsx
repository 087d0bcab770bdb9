/** Open sessions of the console: one's own, for an admin everybody's. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { queryClient, sessionsQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import { dayTime, visible } from "../components/format.js";
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
            <table className="cards">
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
              <tbody>
                {all.map(({ id, name, createdAtMs, endsAtMs, agent, own }) => (
                  <tr key={id}>
                    <td className="mono break strong">{name}</td>
                    <td data-label="Signed in">{dayTime(createdAtMs)}</td>
                    <td data-label="Ends">{dayTime(endsAtMs)}</td>
                    <td data-label="Browser" className="soft small break">
                      {visible(agent)}
                    </td>
                    <td className="number">
                      {own ? (
                        <span className="tag">this one</span>
                      ) : (
                        <button type="button" className="button small bad" onClick={() => end.mutate(id)}>
                          End<span className="unseen"> the session of {name}</span>
                        </button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Read>
      {end.error !== null && <ProblemNotice error={end.error} title="Not ended" />}
    </Panel>
  );
}
