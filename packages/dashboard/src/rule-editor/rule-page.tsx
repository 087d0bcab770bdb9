/** The page of a rule: its traffic, the candidate comparison, the editor, and its history. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { rulesQuery, statsQuery } from "../api/queries.js";
import type { Rule } from "../api/shapes.js";
import { Figure, Figures, Utilisation } from "../components/figures.js";
import { count, share, visible } from "../components/format.js";
import { Empty, Notice, Page, Panel, Read } from "../components/panel.js";
import { RuleTags } from "../components/rule-tags.js";
import { toast } from "../components/toast.js";
import { RuleChart } from "../components/traffic-charts.js";
import { coverageWords, isCounted } from "../components/traffic-points.js";
import { RuleLoad } from "../load/load-page.js";
import { TimeBar } from "../range/time-bar.js";
import { useBefore } from "../range/use-before.js";
import { useTimeline } from "../range/use-timeline.js";
import { releaseGuard } from "../shell/leave-guard.js";
import { RulesReadOnly, useMayEditRules, useSession } from "../shell/session.js";
import { RuleSpend } from "../spend/estimate-panel.js";
import { useSearch } from "../time/use-search.js";
import { useTime } from "../time/use-time.js";
import { CandidatePanel } from "./candidate-panel.js";
import { ChangeDialog } from "./change-dialog.js";
import { describeNumbers } from "./describe-rule.js";
import { type Draft, draftOf, newDraft } from "./draft.js";
import { forgetDraft, readDraft } from "./draft-storage.js";
import { Editor } from "./editor.js";
import { RuleHistory } from "./rule-history.js";
import { Suggestions } from "./suggestions.js";
import { yamlOf } from "./yaml-text.js";

export function NewRulePage() {
  const [, navigate] = useLocation();
  const rules = useQuery(rulesQuery);
  const mayEdit = useMayEditRules();
  const copied = new URLSearchParams(useSearch()).get("copy");
  return (
    <Page title="New rule" about="A request must pass every rule that matches it.">
      {mayEdit ? (
        <Read of={rules} what="rules">
          {({ rules: all, version }) => (
            <Editor
              key={copied ?? ""}
              keptAs={copied === null ? "" : `copy of ${copied}`}
              draft={draftToStartWith(all, copied)}
              isCopy={copied !== null}
              isNew
              base={version}
              taken={new Set(all.map(({ id }) => id))}
              onSaved={(id, made) => {
                toast(`Created, and in force as version ${made}.`, { version: made });
                navigate(`/rules/${id}`);
              }}
            />
          )}
        </Read>
      ) : (
        <RulesReadOnly to="make rules" />
      )}
    </Page>
  );
}

/** Copies a rule in shadow mode: two rules that refuse the same requests are rarely intended. */
function draftToStartWith(rules: readonly Rule[], copied: string | null): Draft {
  const rule = rules.find(({ id }) => id === copied);
  if (rule === undefined) return newDraft;
  return { ...draftOf(rule), id: `${rule.id.slice(0, 59)}-copy`, mode: "shadow" };
}

export function RulePage({ id }: { id: string }) {
  const rules = useQuery(rulesQuery);
  const { name } = useSession();
  const mayEdit = useMayEditRules();
  return (
    <Read of={rules} what="rules">
      {(view) => {
        const rule = view.rules.find((one) => one.id === id);
        if (rule !== undefined) return <RuleView key={id} rule={rule} version={view.version} />;
        if (mayEdit && readDraft(id, name) !== undefined) return <DeletedRule id={id} version={view.version} />;
        return (
          <Page title={visible(id)}>
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

/** The rule was deleted by someone else while it was being edited here: the draft is not lost. */
function DeletedRule({ id, version }: { id: string; version: number }) {
  const [empty] = useState<Draft>(() => ({ ...newDraft, id }));
  return (
    <Page title={visible(id)}>
      <Notice tone="bad" title="This rule is gone: somebody deleted it while you edited it.">
        Your draft is below. Saving it creates the rule again.
      </Notice>
      <Editor
        keptAs={id}
        draft={empty}
        isNew
        base={version}
        taken={new Set()}
        onSaved={(_, made) => toast(`Created again, and in force as version ${made}.`, { version: made })}
      />
    </Page>
  );
}

function RuleView({ rule, version }: { rule: Rule; version: number }) {
  const mayEdit = useMayEditRules();
  const [isDeleting, setIsDeleting] = useState(false);
  // The editor keeps the version that it started with; it is reset only after a change made here.
  const [start, setStart] = useState({ rule, version });
  const [awaited, setAwaited] = useState<number>();
  useEffect(() => {
    if (awaited === undefined || version < awaited) return;
    setStart({ rule, version });
    setAwaited(undefined);
  }, [awaited, rule, version]);
  const finish = (said: string, made: number): void => {
    toast(said, { version: made, onUndone: setAwaited });
    setAwaited(made);
  };
  return (
    <Page
      title={rule.id}
      about={
        <>
          {rule.description === undefined ? describeNumbers(rule) : visible(rule.description)} <RuleTags rule={rule} />
        </>
      }
      actions={
        <>
          <Link href={`/top-keys?rule=${encodeURIComponent(rule.id)}`} className="button">
            Its keys
          </Link>
          {mayEdit && (
            <>
              <Link href={`/new-rule?copy=${rule.id}`} className="button">
                Clone
              </Link>
              <button type="button" className="button bad" onClick={() => setIsDeleting(true)}>
                Delete
              </button>
            </>
          )}
        </>
      }
    >
      <RuleTraffic rule={rule} />
      {(rule.unit !== undefined || rule.estimate !== undefined) && <RuleSpend rule={rule.id} />}
      {hasLoad(rule) && <RuleLoad rule={rule.id} />}
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
          keptAs={rule.id}
          draft={draftOf(start.rule)}
          isNew={false}
          base={start.version}
          taken={new Set()}
          onSaved={(_, made) => finish(`Saved, and in force as version ${made}.`, made)}
        />
      ) : (
        <Panel title="The rule">
          <pre className="changes new-rule">{yamlOf(draftOf(rule))}</pre>
          <RulesReadOnly to="change it" />
        </Panel>
      )}
      {!mayEdit && <Suggestions rule={rule.id} />}
      <RuleHistory
        rule={rule}
        version={version}
        onRestored={(from, made) => finish(`Back as it was in version ${from}; in force as version ${made}.`, made)}
      />
      {isDeleting && <DeleteDialog id={rule.id} version={version} onClose={() => setIsDeleting(false)} />}
    </Page>
  );
}

function hasLoad(rule: Rule): boolean {
  const numbers = [rule, ...(rule.overrides ?? []), ...(rule.variants ?? [])];
  const waits = numbers.some((one) => "maxWait" in one && one.maxWait !== undefined);
  return rule.algorithm === "load-shedding" || rule.adapt !== undefined || waits;
}

function DeleteDialog({ id, version, onClose }: { id: string; version: number; onClose: () => void }) {
  const [, navigate] = useLocation();
  return (
    <ChangeDialog
      title={`Delete ${id}?`}
      verb="Delete rule"
      isBad
      change={{ method: "DELETE", path: `/rules/${id}`, rule: id, base: version }}
      onClose={onClose}
      onDone={({ version: made }) => {
        forgetDraft(id);
        releaseGuard();
        toast(`The rule ${id} is deleted, as of version ${made}.`, { version: made });
        navigate("/rules");
      }}
    >
      <p>It stops limiting at once. Its history stays, and a rollback restores it.</p>
    </ChangeDialog>
  );
}

function RuleTraffic({ rule }: { rule: Rule }) {
  const { time, compare, set } = useTime();
  const stats = useQuery(statsQuery({ time, rule: rule.id }));
  const before = useBefore({ time, compare, rule: rule.id });
  const markers = useTimeline(time, rule.id);
  const own = stats.data?.rules.find((one) => one.rule === rule.id);
  return (
    <Panel title="Traffic" actions={<TimeBar hasLive compareWith="charts" />}>
      <Read of={stats} what="figures of traffic">
        {(view) => {
          const isKnown = isCounted(view) && (own !== undefined || view.complete);
          const shown = (value: number | undefined) => (isKnown ? count(value ?? 0) : "–");
          const words = coverageWords(view, time);
          return (
            <div className="stack">
              {words !== undefined && <p className="soft small">{words}</p>}
              {own === undefined && !view.complete && (
                <p className="soft small">
                  More rules have traffic than are counted one by one: this one&apos;s is unknown.
                </p>
              )}
              <Figures>
                <Figure label="Allowed" mark="allowed">
                  {shown(own?.allowed)}
                </Figure>
                <Figure label="Refused" mark="refused">
                  {shown(own?.refused)} <small>{isKnown && share(own?.violationRate ?? 0)}</small>
                </Figure>
                <Figure label="Shadow-refused" mark="shadow">
                  {shown(own?.shadowRefused)}
                </Figure>
              </Figures>
              <div className="columns">
                <RuleChart
                  stats={own}
                  isCounted={isKnown}
                  before={before}
                  markers={markers}
                  onZoom={(fromMs, toMs) => set({ range: "custom", fromMs, toMs })}
                />
                <div className="close">
                  <h3>How close keys run</h3>
                  {own === undefined ? (
                    <Empty title={isKnown ? "No checks." : "Unknown."} />
                  ) : (
                    <Utilisation steps={own.utilisation} />
                  )}
                </div>
              </div>
            </div>
          );
        }}
      </Read>
    </Panel>
  );
}
