/** "Try on traffic": replays recorded traffic with the draft before it is saved, and compares who is refused before and after. */
import { useMutation } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Problem, request } from "../api/request.js";
import type { TryView } from "../api/shapes.js";
import { Chart, type Line } from "../components/chart.js";
import { Choice } from "../components/controls.js";
import { Figure, Figures } from "../components/figures.js";
import { axisRate, count, dayTime, rate, share, visible } from "../components/format.js";
import { Empty, Notice, Panel, ProblemNotice } from "../components/panel.js";
import type { Draft } from "./draft.js";

export const spans = [
  { value: "10m", label: "10 minutes" },
  { value: "1h", label: "Hour" },
  { value: "24h", label: "Day" },
] as const;

export type Span = (typeof spans)[number]["value"];

/** The service reads for several seconds, after compiling its rules. */
export const TRY_DEADLINE_MS = 65_000;

export function TryOnTraffic({ draft, isValid }: { draft: Draft; isValid: boolean }) {
  const [span, setSpan] = useState<Span>("1h");
  const attempt = useMutation({
    mutationFn: () =>
      request<TryView>(`/rules/${encodeURIComponent(String(draft.id))}/try`, {
        method: "POST",
        body: draft,
        query: { span },
        deadlineMs: TRY_DEADLINE_MS,
      }).then((view) => ({ view, draft })),
  });
  return (
    <Panel
      title="Try on traffic"
      about="The rule as it stands above, on the requests that this instance recorded, beside the rules in force. Nothing is saved or changed."
      actions={<Choice label="Traffic of the last" value={span} options={spans} onChange={setSpan} />}
    >
      <div className="stack" aria-live="polite">
        <div className="buttons">
          <button
            type="button"
            className="button"
            disabled={!isValid || attempt.isPending}
            onClick={() => attempt.mutate()}
          >
            {attempt.isPending ? "Reading the traffic …" : "Try on traffic"}
          </button>
        </div>
        {attempt.error !== null && !attempt.isPending && <Failed error={attempt.error} />}
        {attempt.data !== undefined && !attempt.isPending && attempt.error === null && (
          <>
            {attempt.data.draft !== draft && (
              <Notice tone="warn">The rule was changed since: these figures are of the rule before.</Notice>
            )}
            <Result view={attempt.data.view} />
          </>
        )}
      </div>
    </Panel>
  );
}

function Failed({ error }: { error: unknown }) {
  if (!(error instanceof Problem) || error.code !== "no-recording") {
    return <ProblemNotice error={error} title="It could not be tried" />;
  }
  return (
    <Empty title="This service records no traffic.">
      <span>
        Start it with <code>--record FOLDER</code>, or replay access logs with <code>sluice simulate</code>.
      </span>
    </Empty>
  );
}

function Result({ view }: { view: TryView }) {
  const { total, from, to, endedBy, refusedBefore, refusedAfter, newlyRefused, newlyAdmitted } = view;
  if (total === 0 || from === undefined || to === undefined) {
    return <Empty title="No request was recorded in this time." />;
  }
  return (
    <div className="stack">
      <p className="soft small">
        {count(total)} requests, {dayTime(Date.parse(from))} to {dayTime(Date.parse(to))}.
        {endedBy !== undefined &&
          " Only the first part of this time was read: there is more traffic than is tried at once."}
      </p>
      <Figures>
        <Figure label="Refused before">
          {count(refusedBefore)} <small>{share(refusedBefore / total)}</small>
        </Figure>
        <Figure label="Refused after" mark="refused">
          {count(refusedAfter)} <small>{share(refusedAfter / total)}</small>
        </Figure>
        <Figure label="Newly refused" mark="refused">
          {count(newlyRefused)} <small>{share(newlyRefused / total)}</small>
        </Figure>
        <Figure label="Newly admitted" mark="allowed">
          {count(newlyAdmitted)} <small>{share(newlyAdmitted / total)}</small>
        </Figure>
      </Figures>
      <BeforeAndAfter view={view} />
      <RuleTable rules={view.rules} />
      <KeyTable title="Newly refused keys" keys={view.newlyRefusedKeys} none="No key would newly be refused." />
      {view.newlyAdmittedKeys.length > 0 && (
        <KeyTable title="Newly admitted keys" keys={view.newlyAdmittedKeys} none="" />
      )}
    </div>
  );
}

function BeforeAndAfter({ view: { series } }: { view: TryView }) {
  const { startMs, stepMs, rows } = series;
  const timesMs = useMemo(() => rows.map((_, i) => startMs + i * stepMs), [rows, startMs, stepMs]);
  const lines = useMemo<Line[]>(() => {
    const perSecond = (column: number) => rows.map((row) => ((row[column] ?? 0) * 1_000) / stepMs);
    return [
      { mark: "allowed", label: "Requests", values: perSecond(0), isArea: true },
      { mark: "refused", label: "Refused after", values: perSecond(1), isArea: true },
      { mark: "shadow", label: "Refused before", values: perSecond(2), isDashed: true },
    ];
  }, [rows, stepMs]);
  return (
    <Chart
      label="Requests a second, and refusals before and after"
      timesMs={timesMs}
      lines={lines}
      format={(value) => `${rate(value)}/s`}
      axisFormat={axisRate}
      height={210}
    />
  );
}

const modes: Readonly<Record<string, string>> = { enforce: "this rule", shadow: "in shadow", candidate: "candidate" };

function RuleTable({ rules }: { rules: TryView["rules"] }) {
  return (
    <table className="cards">
      <thead>
        <tr>
          <th scope="col">Numbers of</th>
          <th scope="col" className="number">
            Asked
          </th>
          <th scope="col" className="number">
            Refused
          </th>
          <th scope="col" className="number">
            Keys
          </th>
          <th scope="col" className="number">
            Keys refused
          </th>
          <th scope="col">Worst window</th>
        </tr>
      </thead>
      <tbody>
        {rules.map(({ mode, total, refused, keys, keysRefused, exact, worstWindow }) => (
          <tr key={mode}>
            <td>{modes[mode] ?? mode}</td>
            <td data-label="Asked" className="number">
              {count(total)}
            </td>
            <td data-label="Refused" className="number">
              {count(refused)}
            </td>
            <td data-label="Keys" className="number">
              {exact ? "" : "at least "}
              {count(keys)}
            </td>
            <td data-label="Keys refused" className="number">
              {exact ? "" : "at least "}
              {count(keysRefused)}
            </td>
            <td data-label="Worst window">
              {worstWindow === undefined ? (
                "–"
              ) : (
                <>
                  {count(worstWindow.admitted)} of {count(worstWindow.limit)}{" "}
                  <code className="break">{visible(worstWindow.key)}</code>
                </>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function KeyTable({ title, keys, none }: { title: string; keys: TryView["newlyRefusedKeys"]; none: string }) {
  if (keys.length === 0) return <p>{none}</p>;
  return (
    <table className="cards">
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col" className="number">
            Requests
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map(({ key, refused }) => (
          <tr key={key}>
            <td>
              <code className="break">{visible(key)}</code>
            </td>
            <td data-label="Requests" className="number">
              {count(refused)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
