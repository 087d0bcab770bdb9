/**
 * Explains how every rule treats a request's attributes: whether it matches and why, its state, and when the request would pass next.
 * Looking charges nothing. Editors can reset a rule's counter.
 */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { rulesQuery, topKeysQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import type { Explanation } from "../api/shapes.js";
import { Page, Panel, Read } from "../components/panel.js";
import { useRowFocus } from "../components/row-focus.js";
import { toast } from "../components/toast.js";
import { BlockedKeys } from "../keys/blocked-keys.js";
import { type AttributeRow, attributesOf, keyAddress, rowsOf } from "../keys/key-address.js";
import { KeyHistory } from "../keys/key-history.js";
import { TimeBar } from "../range/time-bar.js";
import { useSearch } from "../time/use-search.js";
import { ExplanationView } from "./explanation.js";
import { KeyTable } from "./top-keys.js";

export function KeysPage() {
  const rows = rowsOf(useSearch());
  // The form is reset for each URL: after its own submission, or a link from elsewhere.
  return (
    <Page
      title="Explain a key"
      about="Enter a request's attributes. The page shows which rules apply and why. Nothing is charged."
      {...(rows.length > 0 && { actions: <TimeBar /> })}
    >
      <AttributeForm key={JSON.stringify(rows)} rows={rows} />
      <Explained attributes={attributesOf(rows)} />
    </Page>
  );
}

function AttributeForm({ rows: given }: { rows: readonly AttributeRow[] }) {
  const [, navigate] = useLocation();
  const [rows, setRows] = useState<readonly AttributeRow[]>(given.length === 0 ? [{ name: "user", value: "" }] : given);
  const { data } = useQuery(rulesQuery);
  const names = useMemo(
    () => [...new Set((data?.rules ?? []).flatMap(({ key, match }) => [...key, ...Object.keys(match ?? {})]))].sort(),
    [data],
  );
  const listId = useId();
  const { list, focusNext } = useRowFocus();
  const change = (at: number, part: Partial<AttributeRow>): void =>
    setRows(rows.map((row, i) => (i === at ? { ...row, ...part } : row)));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    navigate(keyAddress(attributesOf(rows)));
  };
  return (
    <Panel title="The request">
      <form onSubmit={submit} className="attribute-form" ref={list}>
        <datalist id={listId}>
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        {rows.map((row, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other name, and are only added at the end or taken away.
          <div className="attribute-row" key={at}>
            <input
              className="input mono"
              aria-label={`Attribute ${at + 1}, name`}
              placeholder="attribute"
              list={listId}
              value={row.name}
              onChange={(event) => change(at, { name: event.target.value })}
            />
            <span aria-hidden="true">=</span>
            <input
              className="input mono"
              aria-label={`Attribute ${at + 1}, value`}
              placeholder="value"
              maxLength={1024}
              value={row.value}
              onChange={(event) => change(at, { value: event.target.value })}
            />
            <button
              type="button"
              className="button small"
              aria-label={`Remove attribute ${at + 1}`}
              disabled={rows.length === 1}
              onClick={() => {
                setRows(rows.filter((_, i) => i !== at));
                focusNext(at === 0 ? 0 : at - 1);
              }}
            >
              Remove
            </button>
          </div>
        ))}
        <div className="buttons">
          <button type="submit" className="button main">
            Explain
          </button>
          <button
            type="button"
            className="button"
            onClick={() => {
              setRows([...rows, { name: "", value: "" }]);
              focusNext(rows.length);
            }}
          >
            Add attribute
          </button>
        </div>
      </form>
    </Panel>
  );
}

function Explained({ attributes }: { attributes: Readonly<Record<string, string>> }) {
  const client = useQueryClient();
  const hasAny = Object.keys(attributes).length > 0;
  const explained = useQuery({
    queryKey: ["explain", attributes],
    queryFn: () => request<Explanation>("/keys/explain", { method: "POST", body: { attributes } }),
    enabled: hasAny,
    refetchInterval: 2_000,
  });
  const reset = useMutation({
    mutationFn: (rule: string) => request("/keys/reset", { method: "POST", body: { rule, attributes } }),
    onSuccess: async (_, rule) => {
      toast(`The rule ${rule} has forgotten this key.`);
      await client.invalidateQueries({ queryKey: ["explain"] });
    },
  });
  if (!hasAny)
    return (
      <>
        <BlockedKeys />
        <SeenKeys />
      </>
    );
  return (
    <Read of={explained} what="explanation">
      {(explanation) => (
        <>
          <ExplanationView explanation={explanation} reset={reset} attributes={attributes} />
          <KeyHistory attributes={attributes} />
        </>
      )}
    </Read>
  );
}

/** Suggests keys seen recently. */
function SeenKeys() {
  const keys = useQuery(topKeysQuery({ time: { range: "1h" }, by: "refusals", limit: 10, group: "client" }));
  if (keys.data === undefined || keys.data.keys.length === 0) return null;
  return (
    <Panel title="Refused most in the last hour" flush>
      <KeyTable keys={keys.data.keys} />
    </Panel>
  );
}
