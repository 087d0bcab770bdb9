/** Actions on a firing alert: acknowledge it, or silence it for a while. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { queryClient, silencesQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import type { AlertView } from "../api/shapes.js";
import { Field } from "../components/controls.js";
import { Dialog } from "../components/dialog.js";
import { dayTime, visible } from "../components/format.js";
import { Empty, Panel, ProblemNotice, Read } from "../components/panel.js";
import { toast } from "../components/toast.js";
import { useMay } from "../shell/session.js";

async function alertsChanged(): Promise<void> {
  await Promise.all(["alerts", "silences", "audit"].map((key) => queryClient.invalidateQueries({ queryKey: [key] })));
}

export function AlertActions({ alert }: { alert: AlertView }) {
  const [asking, setAsking] = useState<"acknowledge" | "silence">();
  if (alert.state !== "firing") return null;
  const about = <span className="unseen">: {alert.summary}</span>;
  return (
    <div className="buttons">
      {alert.acknowledged === undefined && (
        <button type="button" className="button small" onClick={() => setAsking("acknowledge")}>
          Acknowledge{about}
        </button>
      )}
      {alert.silencedUntilMs === undefined && (
        <button type="button" className="button small" onClick={() => setAsking("silence")}>
          Silence{about}
        </button>
      )}
      {asking === "acknowledge" && <Acknowledge alert={alert} onClose={() => setAsking(undefined)} />}
      {asking === "silence" && (
        <Silence
          match={{ kind: alert.condition ?? alert.kind, ...(alert.rule !== undefined && { rule: alert.rule }) }}
          onClose={() => setAsking(undefined)}
        />
      )}
    </div>
  );
}

function Acknowledge({ alert, onClose }: { alert: AlertView; onClose: () => void }) {
  const [note, setNote] = useState("");
  const send = useMutation({
    mutationFn: () =>
      request(`/alerts/${encodeURIComponent(alert.id)}/acknowledge`, { method: "POST", body: { note } }),
    onSuccess: async () => {
      await alertsChanged();
      toast("Acknowledged. Receivers are told, and it is not repeated any more.");
      onClose();
    },
  });
  return (
    <Dialog
      title="Look after this alert?"
      onClose={onClose}
      onSubmit={() => send.mutate()}
      footer={
        <button type="submit" className="button main" disabled={send.isPending}>
          Acknowledge alert
        </button>
      }
    >
      <p className="break">{visible(alert.summary)}</p>
      <Field label="Note" hint="For the others; may be empty.">
        {(control) => (
          <input
            {...control}
            className="input"
            maxLength={500}
            value={note}
            onChange={(e) => setNote(e.target.value)}
          />
        )}
      </Field>
      {send.error !== null && <ProblemNotice error={send.error} title="Not acknowledged" />}
    </Dialog>
  );
}

const lengths = ["30m", "1h", "4h", "12h", "1d", "7d"] as const;

type Match = Readonly<Partial<Record<"rule" | "tag" | "kind", string>>>;

function Silence({ match: given, onClose }: { match: Match; onClose: () => void }) {
  const [match, setMatch] = useState(given);
  const [length, setLength] = useState<string>("1h");
  const [reason, setReason] = useState("");
  const [isForAll, setIsForAll] = useState(false);
  const set = Object.fromEntries(Object.entries(match).filter(([, value]) => value !== ""));
  const isEmpty = Object.keys(set).length === 0;
  const send = useMutation({
    mutationFn: () => {
      const which = isEmpty ? { all: isForAll } : { match: set };
      return request("/alerts/silences", { method: "POST", body: { ...which, for: length, reason } });
    },
    onSuccess: async () => {
      await alertsChanged();
      onClose();
    },
  });
  const field = (name: keyof Match, label: string) => (
    <Field label={label}>
      {(control) => (
        <input
          {...control}
          className="input mono"
          maxLength={64}
          value={match[name] ?? ""}
          onChange={(event) => setMatch({ ...match, [name]: event.target.value })}
        />
      )}
    </Field>
  );
  return (
    <Dialog
      title="Silence alerts"
      onClose={onClose}
      onSubmit={() => send.mutate()}
      footer={
        <button type="submit" className="button main" disabled={send.isPending}>
          Silence
        </button>
      }
    >
      <p>Alerts that fit are still shown and kept. Their messages wait until the silence ends.</p>
      {field("rule", "Rule")}
      {field("tag", "Tag")}
      {field("kind", "Kind or condition")}
      {isEmpty && (
        <label className="row">
          <input type="checkbox" checked={isForAll} onChange={(event) => setIsForAll(event.target.checked)} />
          Silence every alert
        </label>
      )}
      <Field label="For">
        {(control) => (
          <select {...control} className="input" value={length} onChange={(event) => setLength(event.target.value)}>
            {lengths.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Reason">
        {(control) => (
          <input
            {...control}
            className="input"
            maxLength={500}
            value={reason}
            onChange={(e) => setReason(e.target.value)}
          />
        )}
      </Field>
      {send.error !== null && <ProblemNotice error={send.error} title="Not silenced" />}
    </Dialog>
  );
}

export function Silences() {
  const silences = useQuery(silencesQuery);
  const mayEdit = useMay("editor");
  const [isMaking, setIsMaking] = useState(false);
  const end = useMutation({
    mutationFn: (id: string) => request(`/alerts/silences/${encodeURIComponent(id)}`, { method: "DELETE" }),
    onSuccess: alertsChanged,
  });
  return (
    <Panel
      title="Silences"
      flush
      actions={
        mayEdit && (
          <button type="button" className="button small" onClick={() => setIsMaking(true)}>
            New silence
          </button>
        )
      }
    >
      <Read of={silences} what="silences">
        {({ silences: all }) =>
          all.length === 0 ? (
            <Empty title="None.">Every alert is sent.</Empty>
          ) : (
            <table className="cards">
              <thead>
                <tr>
                  <th scope="col">Alerts of</th>
                  <th scope="col">Until</th>
                  <th scope="col">By</th>
                  <th scope="col">Reason</th>
                  <th scope="col">
                    <span className="unseen">End</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {all.map(({ id, match, endsAtMs, author, reason }) => {
                  const of = Object.entries(match).map(([name, value]) => `${name} ${value}`);
                  return (
                    <tr key={id}>
                      <td className="mono break">{of.length === 0 ? "everything" : visible(of.join(", "))}</td>
                      <td data-label="Until">{dayTime(endsAtMs)}</td>
                      <td data-label="By">{visible(author)}</td>
                      <td data-label="Reason" className="break">
                        {reason === "" ? "–" : visible(reason)}
                      </td>
                      <td className="number">
                        {mayEdit && (
                          <button type="button" className="button small" onClick={() => end.mutate(id)}>
                            End<span className="unseen"> the silence of {of.join(", ")}</span>
                          </button>
                        )}
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          )
        }
      </Read>
      {end.error !== null && <ProblemNotice error={end.error} title="Not ended" />}
      {isMaking && <Silence match={{}} onClose={() => setIsMaking(false)} />}
    </Panel>
  );
}
