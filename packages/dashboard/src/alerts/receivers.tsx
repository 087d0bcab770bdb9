/** The receivers of alerts, their delivery state, and a test message. */
import { useMutation } from "@tanstack/react-query";
import { Link } from "wouter";
import { request } from "../api/request.js";
import type { AlertsView } from "../api/shapes.js";
import { dayTime } from "../components/format.js";
import { Empty, Panel } from "../components/panel.js";
import { toast } from "../components/toast.js";
import { useMay } from "../shell/session.js";

export function AlertTargets({ view }: { view: AlertsView }) {
  const isAdmin = useMay("admin");
  const targets = [
    ...view.receivers.map(({ id, type, ...state }) => ({ name: id, format: type, test: id, ...state })),
    ...view.webhooks.map(({ url, format, ...state }) => ({ name: url, format, test: undefined, ...state })),
  ];
  return (
    <Panel
      title="Where alerts are sent"
      flush
      actions={
        isAdmin && (
          <Link href="/alerts/settings" className="button small">
            Thresholds, receivers and routes
          </Link>
        )
      }
    >
      {targets.length === 0 ? (
        <Empty title="Nowhere.">Alerts are shown here and kept. An admin can add receivers.</Empty>
      ) : (
        <table className="cards">
          <thead>
            <tr>
              <th scope="col">Receiver</th>
              <th scope="col">Format</th>
              <th scope="col">Last sent</th>
              <th scope="col">Last failure</th>
              <th scope="col">
                <span className="unseen">Test</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {targets.map((target) => (
              <tr key={`${target.format} ${target.name}`}>
                <td className="mono break">{target.name}</td>
                <td data-label="Format">{target.format}</td>
                <td data-label="Last sent">
                  {target.lastSentAtMs === undefined ? "never" : dayTime(target.lastSentAtMs)}
                </td>
                <td data-label="Last failure" className="break">
                  {target.lastError ?? "none"}
                </td>
                <td className="number">{isAdmin && target.test !== undefined && <Test receiver={target.test} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function Test({ receiver }: { receiver: string }) {
  const send = useMutation({
    mutationFn: () =>
      request<{ delivered: boolean; error?: string }>(`/alerts/receivers/${encodeURIComponent(receiver)}/test`, {
        method: "POST",
        deadlineMs: 30_000,
      }),
    onSuccess: ({ delivered, error }) =>
      toast(
        delivered ? `The test message reached ${receiver}.` : `The test message did not reach ${receiver}: ${error}`,
      ),
    onError: (error) => toast(`No test message was sent: ${error.message}`),
  });
  return (
    <button type="button" className="button small" disabled={send.isPending} onClick={() => send.mutate()}>
      {send.isPending ? "Sending …" : "Send a test"}
      <span className="unseen"> to {receiver}</span>
    </button>
  );
}
