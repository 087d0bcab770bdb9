/** Suggested limits from the real traffic of the rule's keys. A click makes one the draft's candidate, without saving. */
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/request.js";
import type { SuggestionsView } from "../api/shapes.js";
import { Choice } from "../components/controls.js";
import { count } from "../components/format.js";
import { Empty, Panel, ProblemNotice } from "../components/panel.js";
import { type Span, spans, TRY_DEADLINE_MS } from "./try-on-traffic.js";

interface SuggestionsProps {
  readonly rule: string;
  /** Absent for viewers. */
  readonly onUse?: ((limit: number) => void) | undefined;
}

export function Suggestions({ rule, onUse }: SuggestionsProps) {
  const [span, setSpan] = useState<Span>("1h");
  const asked = useMutation({
    mutationFn: () =>
      request<SuggestionsView>(`/rules/${encodeURIComponent(rule)}/suggestions`, {
        query: { span },
        deadlineMs: TRY_DEADLINE_MS,
      }),
  });
  return (
    <Panel
      title="Suggested limits"
      about="From the most that each key of this rule had in any of its windows."
      actions={<Choice label="Traffic of the last" value={span} options={spans} onChange={setSpan} />}
    >
      <div className="stack" aria-live="polite">
        <div className="buttons">
          <button type="button" className="button" disabled={asked.isPending} onClick={() => asked.mutate()}>
            {asked.isPending ? "Reading the traffic …" : "Suggest limits"}
          </button>
        </div>
        {asked.error !== null && !asked.isPending && (
          <ProblemNotice error={asked.error} title="Nothing can be suggested" />
        )}
        {asked.data !== undefined && !asked.isPending && asked.error === null && (
          <Limits view={asked.data} onUse={onUse} />
        )}
      </div>
    </Panel>
  );
}

function Limits({ view, onUse }: { view: SuggestionsView; onUse: SuggestionsProps["onUse"] }) {
  const { source, keys, p50, max, headroom, limits, endedBy } = view;
  if (limits.length === 0) {
    return (
      <Empty title="Nothing to suggest from.">
        {source === "history" && keys > 0
          ? "Keys were refused: how much they wanted is not in the history. A recording (--record) has it."
          : "No key of this rule was seen in this time."}
      </Empty>
    );
  }
  return (
    <div className="stack">
      <p className="soft small">
        {source === "recording"
          ? `${count(keys)} keys of the recording`
          : `The ${count(keys)} busiest keys of the history`}
        : half of them had at most {count(p50)}, the busiest {count(max)}. Each limit is {headroom} times what was seen.
        {endedBy !== undefined && " Only the first part of this time was read."}
      </p>
      <table className="cards">
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col" className="number">
              Limit
            </th>
            <th scope="col" className="number">
              Keys it would touch
            </th>
            {onUse !== undefined && <th scope="col" aria-label="Use" />}
          </tr>
        </thead>
        <tbody>
          {limits.map(({ from, limit, keysTouched }) => (
            <tr key={from}>
              <td>{from}</td>
              <td data-label="Limit" className="number">
                {count(limit)}
              </td>
              <td data-label="Keys it would touch" className="number">
                {count(keysTouched)} of {count(keys)}
              </td>
              {onUse !== undefined && (
                <td>
                  <button
                    type="button"
                    className="button small"
                    aria-label={`Use as candidate: ${limit}, from ${from}`}
                    onClick={() => onUse(limit)}
                  >
                    Use as candidate
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
