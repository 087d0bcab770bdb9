/** The keys that are blocked now, and for how long. Editors may lift a block, which also resets the counter. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { memo, useMemo, useState } from "react";
import { blockedKeysQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import type { BlockedKeyView } from "../api/shapes.js";
import { count, wait } from "../components/format.js";
import { LongRows } from "../components/long-rows.js";
import { Panel, ProblemNotice } from "../components/panel.js";
import { toast } from "../components/toast.js";
import { useStable } from "../components/use-stable.js";
import { useMay } from "../shell/session.js";
import { KeyCells } from "./key-cells.js";

/** An attack may block very many; few look beyond the first page. */
const PAGE = 250;

type LiftedKey = Required<Pick<BlockedKeyView, "rule" | "attributes">>;

export function BlockedKeys() {
  const client = useQueryClient();
  const blocked = useQuery(blockedKeysQuery);
  const mayLift = useMay("editor");
  const lift = useMutation({
    mutationFn: ({ rule, attributes }: LiftedKey) =>
      request("/keys/reset", { method: "POST", body: { rule, attributes } }),
    onSuccess: async (_, { rule }) => {
      toast(`The block under ${rule} is lifted, and its counter reset.`);
      await client.invalidateQueries({ queryKey: blockedKeysQuery.queryKey });
    },
  });
  const onLift = useStable((key: LiftedKey) => lift.mutate(key));
  const all = blocked.data?.keys;
  const [wanted, setWanted] = useState(0);
  // Blocks end while the page is open: the last page may be gone.
  const first = Math.min(wanted, PAGE * Math.max(0, Math.ceil((all?.length ?? 0) / PAGE) - 1));
  const named = useMemo(() => withNames(all ?? [], first), [all, first]);
  if (blocked.error !== null) return <ProblemNotice error={blocked.error} title="Blocked keys are unknown" />;
  if (blocked.data === undefined || blocked.data.keys.length === 0) return null;
  const { keys, complete } = blocked.data;
  return (
    <Panel title={`Blocked now (${complete ? "" : "at least "}${count(keys.length)})`} flush>
      {lift.error !== null && <ProblemNotice error={lift.error} title="Not lifted" />}
      <table className="cards long blocked" aria-rowcount={named.length + 1}>
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
        <LongRows rows={named} nameOf={nameOf}>
          {({ key }, name) => (
            <BlockedRow
              key={name}
              rule={key.rule}
              attributes={key.attributes}
              freeIn={wait(key.leftMs)}
              isLifting={lift.isPending}
              onLift={mayLift ? onLift : undefined}
            />
          )}
        </LongRows>
      </table>
      {keys.length > PAGE && (
        <div className="pager">
          <span className="soft">
            {count(first + 1)} to {count(first + named.length)} of {count(keys.length)}, the longest block first
          </span>
          <button type="button" className="button small" disabled={first === 0} onClick={() => setWanted(first - PAGE)}>
            Previous
          </button>
          <button
            type="button"
            className="button small"
            disabled={first + PAGE >= keys.length}
            onClick={() => setWanted(first + PAGE)}
          >
            Next
          </button>
        </div>
      )}
    </Panel>
  );
}

interface NamedKey {
  readonly name: string;
  readonly key: BlockedKeyView;
}

/** Keys that are too long to show have the same name: they are told apart by their place. */
function withNames(keys: readonly BlockedKeyView[], first: number): NamedKey[] {
  return keys
    .slice(first, first + PAGE)
    .map((key, i) => ({ name: JSON.stringify([key.rule, key.attributes ?? first + i]), key }));
}

function nameOf({ name }: NamedKey): string {
  return name;
}

interface BlockedRowProps extends Pick<BlockedKeyView, "rule"> {
  readonly attributes: BlockedKeyView["attributes"] | undefined;
  readonly freeIn: string;
  readonly isLifting: boolean;
  /** Absent for viewers. */
  readonly onLift: ((key: LiftedKey) => void) | undefined;
}

const BlockedRow = memo(function BlockedRow({ rule, attributes, freeIn, isLifting, onLift }: BlockedRowProps) {
  return (
    <tr>
      <KeyCells rule={rule} {...(attributes !== undefined && { attributes })} />
      <td data-label="Free in" className="number">
        {freeIn}
      </td>
      <td>
        {onLift !== undefined && attributes !== undefined && (
          <button
            type="button"
            className="button small"
            disabled={isLifting}
            onClick={() => onLift({ rule, attributes })}
          >
            Lift
          </button>
        )}
      </td>
    </tr>
  );
});
