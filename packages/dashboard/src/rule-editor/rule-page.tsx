/** One rule: its traffic, its candidate beside it, the editor, and its history. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { rulesQuery, statsQuery } from "../api/queries.js";
import type { Rule, StatsWindow } from "../api/shapes.js";
import { RuleTags } from "../pages/rules.js";
import { RuleChart } from "../pages/traffic-charts.js";
import { Choice, windows } from "../parts/controls.js";
import { Figure, Figures, Utilisation } from "../parts/figures.js";
import { count, share } from "../parts/format.js";
import { Empty, Notice, Page, Panel, Read } from "../parts/panel.js";
import { NeedsRole, useMay } from "../shell/session.js";
import { CandidatePanel } from "./candidate-panel.js";
import { ChangeDialog } from "./change-dialog.js";
import { describeNumbers } from "./describe-rule.js";
import { draftOf, newDraft } from "./draft.js";
import { Editor } from "./editor.js";
import { RuleHistory } from "./rule-history.js";
import { yamlOf } from "./yaml-text.js";

export function NewRulePage() {
  const [, navigate] = useLocation();
  const rules = useQuery(rulesQuery);
  const mayEdit = useMay("editor");
  return (
    <Page title="New rule" about="A request must pass every rule that matches it.">
      {mayEdit ? (
        <Read of={rules} what="rules">
          {({ rules: all, version }) => (
            <Editor
              draft={newDraft}
              isNew
              base={version}
              taken={new Set(all.map(({ id }) => id))}
              onSaved={(id) => navigate(`/rules/${id}`)}
            />
          )}
        </Read>
      ) : (
        <NeedsRole needed="editor" to="make rules" />
      )}
    </Page>
  );
}

export function RulePage({ id }: { id: string }) {
  const rules = useQuery(rulesQuery);
  return (
    <Read of={rules} what="rules">
      {(view) => {
        const rule = view.rules.find((one) => one.id === id);
        if (rule !== undefined) return <RuleView key={id} rule={rule} version={view.version} />;
        return (
          <Page title={id}>
            <Empty title="There is no rule of this id.">
              <Link href="/rules" className="button">
                All rules
              </Link>
            </Empty>
          </Page>
        );
      }}
    </Read>
  );
}

function RuleView({ rule, version }: { rule: Rule; version: number }) {
  const [, navigate] = useLocation();
  const mayEdit = useMay("editor");
  const [isDeleting, setIsDeleting] = useState(false);
  const [done, setDone] = useState<string>();
  // The editor keeps the version that it began with; it begins anew only after a change made here.
  const [start, setStart] = useState({ rule, version });
  const [awaited, setAwaited] = useState<number>();
  useEffect(() => {
    if (awaited === undefined || version < awaited) return;
    setStart({ rule, version });
    setAwaited(undefined);
  }, [awaited, rule, version]);
  const finish = (said: string, made: number): void => {
    setDone(said);
    setAwaited(made);
  };
  return (
    <Page
      title={rule.id}
      about={
        <>
          {rule.description ?? describeNumbers(rule)} <RuleTags rule={rule} />
        </>
      }
      actions={
        mayEdit ? (
          <button type="button" className="button bad" onClick={() => setIsDeleting(true)}>
            Delete
          </button>
        ) : undefined
      }
    >
      {done !== undefined && <Notice tone="good">{done}</Notice>}
      <RuleTraffic rule={rule} />
      {rule.candidate !== undefined && (
        <CandidatePanel
          rule={rule}
          version={version}
          onPromoted={(made) => finish(`The candidate's numbers are live, as version ${made}.`, made)}
        />
      )}
      {mayEdit ? (
        <Editor
          key={start.version}
          draft={draftOf(start.rule)}
          isNew={false}
          base={start.version}
          taken={new Set()}
          onSaved={(_, made) => finish(`Saved, and in force as version ${made}.`, made)}
        />
      ) : (
        <Panel title="The rule">
          <pre className="changes new-rule">{yamlOf(draftOf(rule))}</pre>
          <NeedsRole needed="editor" to="change it" />
        </Panel>
      )}
      <RuleHistory
        rule={rule}
        version={version}
        onRestored={(from, made) => finish(`Back as it was in version ${from}; in force as version ${made}.`, made)}
      />
      {isDeleting && (
        <ChangeDialog
          title={`Delete ${rule.id}?`}
          verb="Delete rule"
          isBad
          change={{ method: "DELETE", path: `/rules/${rule.id}`, rule: rule.id, base: version }}
          onClose={() => setIsDeleting(false)}
          onDone={() => navigate("/rules")}
        >
          <p>It stops to limit anything at once. Its history stays, and a roll back brings it back.</p>
        </ChangeDialog>
      )}
    </Page>
  );
}

function RuleTraffic({ rule }: { rule: Rule }) {
  const [window, setWindow] = useState<StatsWindow>("hour");
  const stats = useQuery(statsQuery({ window, rule: rule.id }));
  const own = stats.data?.rules.find((one) => one.rule === rule.id);
  return (
    <Panel title="Traffic" actions={<Choice label="Time" value={window} options={windows} onChange={setWindow} />}>
      <Read of={stats} what="figures of traffic">
        {(view) => (
          <div className="stack">
            <Figures>
              <Figure label="Allowed" mark="allowed">
                {count(own?.allowed ?? 0)}
              </Figure>
              <Figure label="Refused" mark="refused">
                {count(own?.refused ?? 0)} <small>{share(own?.violationRate ?? 0)}</small>
              </Figure>
              <Figure label="Shadow-refused" mark="shadow">
                {count(own?.shadowRefused ?? 0)}
              </Figure>
            </Figures>
            <div className="columns">
              <RuleChart stats={own} stepMs={view.stepMs} />
              <div className="close">
                <h3>How close keys run</h3>
                {own === undefined ? <Empty title="No checks." /> : <Utilisation steps={own.utilisation} />}
              </div>
            </div>
          </div>
        )}
      </Read>
    </Panel>
  );
}
