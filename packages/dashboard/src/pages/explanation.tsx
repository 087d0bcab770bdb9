/** What the rules say of one request. */
import type { UseMutationResult } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { Degraded, ExplainedRule, Explanation } from "../api/shapes.js";
import { Dialog } from "../components/dialog.js";
import { clockTime, count, wait } from "../components/format.js";
import { Empty, Notice, Panel, ProblemNotice } from "../components/panel.js";
import { NeedsRole, useMay } from "../shell/session.js";

type Reset = UseMutationResult<unknown, Error, string>;

export function ExplanationView({ explanation, reset }: { explanation: Explanation; reset: Reset }) {
  const { decision, rules, more = 0 } = explanation;
  const matched = rules.filter(({ matched: isMatched }) => isMatched);
  const others = rules.filter(({ matched: isMatched }) => !isMatched);
  const mayReset = useMay("editor");
  return (
    <>
      <Verdict decision={decision} />
      {reset.error !== null && <ProblemNotice error={reset.error} title="Not reset" />}
      <Panel title={`Rules that apply (${count(matched.length)})`} flush>
        {matched.length === 0 ? (
          <Empty title="No rule applies to this request.">It passes.</Empty>
        ) : (
          <ul className="list">
            {matched.map((rule) => (
              <MatchedRule key={rule.rule} rule={rule} decision={decision} reset={reset} mayReset={mayReset} />
            ))}
          </ul>
        )}
      </Panel>
      {!mayReset && matched.length > 0 && <NeedsRole needed="editor" to="reset a key" />}
      {others.length > 0 && (
        <details className="panel others">
          <summary>Rules that do not apply ({count(others.length + more)})</summary>
          <ul className="list">
            {others.map(({ rule, why }) => (
              <li key={rule}>
                <Link href={`/rules/${rule}`} className="mono">
                  {rule}
                </Link>{" "}
                <span className="soft break">{why}</span>
              </li>
            ))}
            {more > 0 && <li className="soft">and {count(more)} more</li>}
          </ul>
        </details>
      )}
    </>
  );
}

/** What each failure policy does with a request. */
const policies: Readonly<Record<Degraded, string>> = {
  allow: "passes, and is not counted",
  deny: "is refused until the store answers",
  local: "is counted by this instance alone, at its share of the limit",
};

function Verdict({ decision }: { decision: Explanation["decision"] }) {
  if (decision.degraded !== undefined) {
    return (
      <Notice
        tone={decision.allowed ? "warn" : "bad"}
        title={`The store does not answer. By failure policy it would ${decision.allowed ? "pass" : "be refused"}.`}
      >
        What is stored for this key is unknown: whether it would pass with the store cannot be told.
        {!decision.allowed && ` Refused by ${decision.violated.join(", ")} (${decision.reason}).`}
      </Notice>
    );
  }
  if (decision.allowed) {
    const left =
      decision.rule === undefined
        ? "No enforced rule limits it."
        : `The tightest rule is ${decision.rule}: ${count(decision.remaining ?? 0)} of ${count(decision.limit ?? 0)} left.`;
    return (
      <Notice tone="good" title="It would pass now.">
        {left}
      </Notice>
    );
  }
  return (
    <Notice tone="bad" title="It would be refused now.">
      By {decision.violated.join(", ")} ({decision.reason}). It passes in {wait(decision.retryAfterMs)} if nothing else
      comes.
    </Notice>
  );
}

function MatchedRule({
  rule,
  decision,
  reset,
  mayReset,
}: {
  rule: ExplainedRule;
  decision: Explanation["decision"];
  reset: Reset;
  mayReset: boolean;
}) {
  const [isAsking, setIsAsking] = useState(false);
  const checks = decision.checks.filter((check) => check.rule === rule.rule);
  const live = checks.find(({ mode }) => mode !== "candidate");
  const candidate = checks.find(({ mode }) => mode === "candidate");
  const used = live === undefined ? 0 : live.limit - live.remaining;
  const mark = live?.allowed === false ? "refused" : "allowed";
  return (
    <li className="matched">
      <div>
        <Link href={`/rules/${rule.rule}`} className="mono strong">
          {rule.rule}
        </Link>{" "}
        {live !== undefined && (
          <span
            className={`tag ${rule.degraded !== undefined && live.allowed ? "warn" : live.allowed ? "good" : "bad"}`}
          >
            {live.allowed ? "allows" : `refuses: ${live.reason}`}
            {rule.degraded !== undefined && `, by its failure policy (${rule.degraded})`}
            {live.mode === "shadow" && ", in shadow"}
          </span>
        )}{" "}
        {candidate !== undefined && (
          <span className="tag candidate">candidate {candidate.allowed ? "would allow" : "would refuse"}</span>
        )}{" "}
        {rule.variant !== undefined && <span className="tag accent">variant {rule.variant}</span>}
        <p className="soft break">{rule.why}</p>
        {rule.degraded !== undefined && <p>Without the store the request {policies[rule.degraded]}.</p>}
      </div>
      {live !== undefined && (rule.degraded === undefined || rule.degraded === "local") && (
        <div className="use">
          <span className="meter">
            <i
              style={
                {
                  width: `${live.limit === 0 ? 0 : Math.min(1, used / live.limit) * 100}%`,
                  "--mark": `var(--${mark})`,
                } as React.CSSProperties
              }
            />
          </span>
          <span className="small">
            {count(used)} of {count(live.limit)} in use{rule.degraded === "local" && ", counted here alone"}
          </span>
        </div>
      )}
      <dl className="pairs small">
        {rule.key !== undefined && (
          <>
            <dt>Key</dt>
            <dd className="mono">{rule.key === "" ? "one for all" : rule.key}</dd>
          </>
        )}
        {rule.nextAllowedAt !== undefined && rule.degraded === undefined && (
          <>
            <dt>Passes next</dt>
            <dd>{live?.allowed === false ? `at ${clockTime(rule.nextAllowedAt)}` : "now"}</dd>
          </>
        )}
        {rule.degraded !== undefined && (
          <>
            <dt>Stored</dt>
            <dd>unknown</dd>
          </>
        )}
        {rule.state !== undefined && Object.keys(rule.state).length > 0 && (
          <>
            <dt>Stored</dt>
            <dd className="mono">
              {Object.entries(rule.state)
                .map(([name, value]) => `${name} ${value}`)
                .join(", ")}
            </dd>
          </>
        )}
      </dl>
      {mayReset && (
        <button type="button" className="button small" onClick={() => setIsAsking(true)}>
          Reset
          <span className="unseen"> {rule.rule}</span>
        </button>
      )}
      {isAsking && (
        <Dialog
          title={`Forget what ${rule.rule} has counted?`}
          onClose={() => setIsAsking(false)}
          onSubmit={() => {
            reset.mutate(rule.rule);
            setIsAsking(false);
          }}
          footer={
            <button type="submit" className="button main bad">
              Reset the key
            </button>
          }
        >
          <p>
            The key starts anew, as if it had never asked. Other keys and rules are not touched. The audit keeps who did
            it.
          </p>
        </Dialog>
      )}
    </li>
  );
}
