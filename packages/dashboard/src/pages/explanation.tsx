/** Explains a request: the verdict, the rules that match with their state, and why each of the others does not. */
import { Link } from "wouter";
import type { Explanation } from "../api/shapes.js";
import { count, isEndless, partOf, visible, wait } from "../components/format.js";
import { Empty, Notice, Panel, ProblemNotice } from "../components/panel.js";
import { NeedsRole, useMay } from "../shell/session.js";
import { MatchedRule, type Reset } from "./matched-rule.js";

interface ExplanationViewProps {
  readonly explanation: Explanation;
  readonly reset: Reset;
  readonly attributes: Readonly<Record<string, string>>;
}

export function ExplanationView({ explanation, reset, attributes }: ExplanationViewProps) {
  const { decision, rules, more = 0 } = explanation;
  const matched = rules.filter(({ matched: isMatched }) => isMatched);
  const others = rules.filter(({ matched: isMatched }) => !isMatched);
  const mayReset = useMay("editor");
  return (
    <>
      <Verdict decision={decision} unit={rules.find(({ rule }) => rule === decision.rule)?.unit} />
      {reset.error !== null && <ProblemNotice error={reset.error} title="Not reset" />}
      <Panel title={`Rules that apply (${count(matched.length)})`} flush>
        {matched.length === 0 ? (
          <Empty title="No rule applies to this request.">It passes.</Empty>
        ) : (
          <ul className="list">
            {matched.map((rule) => (
              <MatchedRule
                key={rule.rule}
                rule={rule}
                decision={decision}
                reset={reset}
                mayReset={mayReset}
                attributes={attributes}
              />
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
                <span className="soft break">{visible(why)}</span>
              </li>
            ))}
            {more > 0 && <li className="soft">and {count(more)} more</li>}
          </ul>
        </details>
      )}
    </>
  );
}

function Verdict({ decision, unit }: { decision: Explanation["decision"]; unit: string | undefined }) {
  if (decision.degraded !== undefined) {
    return (
      <Notice
        tone={decision.allowed ? "warn" : "bad"}
        title={`The store does not answer. By failure policy it would ${decision.allowed ? "pass" : "be refused"}.`}
      >
        The stored state of this key is unknown, and so is the store's verdict.
        {!decision.allowed && ` Refused by ${decision.violated.join(", ")} (${decision.reason}).`}
      </Notice>
    );
  }
  if (decision.allowed) {
    const left =
      decision.rule === undefined
        ? "No enforced rule limits it."
        : `The tightest rule is ${decision.rule}: ${partOf(decision.remaining ?? 0, decision.limit ?? 0, unit)} left.`;
    return (
      <Notice tone="good" title="It would pass now.">
        {left}
      </Notice>
    );
  }
  return (
    <Notice tone="bad" title="It would be refused now.">
      By {decision.violated.join(", ")} ({decision.reason}).{" "}
      {isEndless(decision.retryAfterMs)
        ? "No wait helps."
        : `It passes in ${wait(decision.retryAfterMs)} if nothing else comes.`}
    </Notice>
  );
}
