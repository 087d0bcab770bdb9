/** The currently blocked keys, with the remaining time. Editors can lift a block, which also resets the counter. */
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
import { type StillOrder, stepTo, stillPage } from "./still-order.js";

/** An attack may block very many keys; few people look past the first page. */
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
  const [order, setOrder] = useState<StillOrder>();
  const keys = blocked.data?.keys;
  const all = useMemo(() => withNames(keys ?? []), [keys]);
  const page = useMemo(() => stillPage(all, order, PAGE), [all, order]);
  const { rows: named, first, end, total, fresh } = page;
  const turn = (to: number) => setOrder(stepTo(all, order, to));
  if (blocked.error !== null) return <ProblemNotice error={blocked.error} title="Blocked keys are unknown" />;
  if (blocked.data === undefined || blocked.data.keys.length === 0) return null;
  return (
    <Panel title={`Blocked now (${blocked.data.complete ? "" : "at least "}${count(all.length)})`} flush>
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
      {total > PAGE && (
        <div className="pager">
          <span className="soft">
            {count(first + 1)} to {count(end)} of {count(total)}, the longest block first
            {fresh > 0 && `; ${count(fresh)} blocked since, on the first page`}
          </span>
          <button type="button" className="button small" disabled={first === 0} onClick={() => turn(first - PAGE)}>
            Previous
          </button>
          <button type="button" className="button small" disabled={end >= total} onClick={() => turn(first + PAGE)}>
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

/** Keys too long to show share a name: number them within their rule. */
function withNames(keys: readonly BlockedKeyView[]): NamedKey[] {
  const unnamed = new Map<string, number>();
  return keys.map((key) => {
    if (key.attributes !== undefined) return { name: JSON.stringify([key.rule, key.attributes]), key };
    const place = unnamed.get(key.rule) ?? 0;
    unnamed.set(key.rule, place + 1);
    return { name: JSON.stringify([key.rule, place]), key };
  });
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
