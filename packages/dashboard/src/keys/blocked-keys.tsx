/** The keys that are blocked now, and for how long. Editors may lift a block, which also resets the counter. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { blockedKeysQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import type { BlockedKeyView } from "../api/shapes.js";
import { count, wait } from "../components/format.js";
import { Panel, ProblemNotice } from "../components/panel.js";
import { toast } from "../components/toast.js";
import { useMay } from "../shell/session.js";
import { KeyCells } from "./key-cells.js";

export function BlockedKeys() {
  const client = useQueryClient();
  const blocked = useQuery(blockedKeysQuery);
  const mayLift = useMay("editor");
  const lift = useMutation({
    mutationFn: ({ rule, attributes }: BlockedKeyView) =>
      request("/keys/reset", { method: "POST", body: { rule, attributes } }),
    onSuccess: async (_, { rule }) => {
      toast(`The block under ${rule} is lifted, and its counter reset.`);
      await client.invalidateQueries({ queryKey: blockedKeysQuery.queryKey });
    },
  });
  if (blocked.error !== null) return <ProblemNotice error={blocked.error} title="Blocked keys are unknown" />;
  if (blocked.data === undefined || blocked.data.keys.length === 0) return null;
  const { keys, complete } = blocked.data;
  return (
    <Panel title={`Blocked now (${complete ? "" : "at least "}${count(keys.length)})`} flush>
      {lift.error !== null && <ProblemNotice error={lift.error} title="Not lifted" />}
      <table className="cards">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Rule</th>
            <th scope="col" className="number">
              Free in
            </th>
            <th scope="col" aria-label="Lift" />
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={`${key.rule} ${JSON.stringify(key.attributes)}`}>
              <KeyCells {...key} />
              <td data-label="Free in" className="number">
                {wait(key.leftMs)}
              </td>
              <td>
                {mayLift && key.attributes !== undefined && (
                  <button
                    type="button"
                    className="button small"
                    disabled={lift.isPending}
                    onClick={() => lift.mutate(key)}
                  >
                    Lift
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
