/** The alert policy as YAML, with the service's message for each mistake. Secrets are not shown; if omitted, they are kept. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { parse, stringify } from "yaml";
import { alertPolicyQuery, queryClient } from "../api/queries.js";
import { Problem, request } from "../api/request.js";
import type { AlertPolicyView } from "../api/shapes.js";
import { Field } from "../components/controls.js";
import { Notice, Page, Panel, ProblemNotice, Read } from "../components/panel.js";
import { toast } from "../components/toast.js";
import { NeedsRole, useMay } from "../shell/session.js";

/** Shown for an empty policy: an example of each part, to edit or delete. */
const example = `# conditions:
#   - { id: login-refusals, rule: guard-login, metric: refused-share, above: 0.3, for: 3m, severity: critical }
# detectors:
#   - { kind: unusual-rate, tag: batch, mode: off }
# receivers:
#   - { id: pager, type: pagerduty, key: ROUTING_KEY }
#   - { id: chat, type: slack, url: https://hooks.slack.com/services/... }
#   - { id: mail, type: email, to: [ops@example.org] }
# routes:
#   - { match: { severity: critical }, receivers: [pager, mail], repeat: 4h }
#   - { receivers: [chat] }
`;

function textOf({ version: _, ...policy }: AlertPolicyView): string {
  const set = Object.fromEntries(Object.entries(policy).filter(([, list]) => list.length > 0));
  return Object.keys(set).length === 0 ? example : stringify(set);
}

export function AlertSettingsPage() {
  const isAdmin = useMay("admin");
  const policy = useQuery(alertPolicyQuery);
  return (
    <Page
      title="Alert settings"
      about="Thresholds of your own, tuned detectors, receivers, and routes between them."
      actions={
        <Link href="/alerts" className="button">
          Alerts
        </Link>
      }
    >
      {!isAdmin && <NeedsRole needed="admin" to="change them" />}
      <Panel>
        <Read of={policy} what="alert policy">
          {(view) => <Editor key={view.version} view={view} isAdmin={isAdmin} />}
        </Read>
      </Panel>
    </Page>
  );
}

function Editor({ view, isAdmin }: { view: AlertPolicyView; isAdmin: boolean }) {
  const [text, setText] = useState(() => textOf(view));
  const save = useMutation({
    mutationFn: () =>
      request<AlertPolicyView>("/alerts/policy", {
        method: "PUT",
        body: (parse(text) as object | null) ?? {},
        ifMatch: view.version,
      }),
    onSuccess: async (saved) => {
      queryClient.setQueryData(alertPolicyQuery.queryKey, saved);
      await queryClient.invalidateQueries({ queryKey: ["alerts"] });
      toast(`The alert policy is at version ${saved.version}.`);
    },
  });
  const mistakes = save.error instanceof Problem ? save.error.mistakes : [];
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <Field
        label="Policy (YAML)"
        hint="Secrets (key, secret, the url of webhooks and Slack) are never shown. Left out, they stay as they are."
      >
        {(control) => (
          <textarea
            {...control}
            className="input mono policy-text"
            rows={24}
            spellCheck={false}
            readOnly={!isAdmin}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      {mistakes.length > 0 ? (
        <Notice tone="bad" title="Not saved">
          <ul>
            {mistakes.map(({ path, message }) => (
              <li key={path + message}>
                <code>{path}</code>: {message}
              </li>
            ))}
          </ul>
        </Notice>
      ) : (
        save.error !== null && <ProblemNotice error={save.error} title="Not saved" />
      )}
      {isAdmin && (
        <div className="buttons">
          <button type="submit" className="button main" disabled={save.isPending}>
            Save
          </button>
          <span className="soft small">Version {view.version}</span>
        </div>
      )}
    </form>
  );
}
