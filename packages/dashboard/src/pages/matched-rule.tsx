/** A rule that matches a request: its verdict, how much of the limit is in use, its stored state, and a reset. */
import type { UseMutationResult } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { Degraded, ExplainedEstimate, ExplainedRule, Explanation } from "../api/shapes.js";
import { Dialog } from "../components/dialog.js";
import { clockTime, fullTime, partOf, visible, withUnit } from "../components/format.js";
import { KeyActions, OverrideInForce } from "./key-actions.js";

export type Reset = UseMutationResult<unknown, Error, string>;

type Check = Explanation["decision"]["checks"][number];

/** How each failure policy answers a request. */
const policies: Readonly<Record<Degraded, string>> = {
  allow: "passes, and is not counted",
  deny: "is refused until the store answers",
  local: "is counted by this instance alone, at its share of the limit",
};

interface MatchedRuleProps {
  readonly rule: ExplainedRule;
  readonly decision: Explanation["decision"];
  readonly reset: Reset;
  readonly mayReset: boolean;
  readonly attributes: Readonly<Record<string, string>>;
}

export function MatchedRule({ rule, decision, reset, mayReset, attributes }: MatchedRuleProps) {
  const checks = decision.checks.filter((check) => check.rule === rule.rule);
  const live = checks.find(({ mode }) => mode !== "candidate");
  const candidate = checks.find(({ mode }) => mode === "candidate");
  return (
    <li className="matched">
      <div>
        <Link href={`/rules/${rule.rule}`} className="mono strong">
          {rule.rule}
        </Link>{" "}
        {live !== undefined && <VerdictTag live={live} degraded={rule.degraded} />}{" "}
        {candidate !== undefined && (
          <span className="tag candidate">candidate {candidate.allowed ? "would allow" : "would refuse"}</span>
        )}{" "}
        {rule.variant !== undefined && <span className="tag accent">variant {rule.variant}</span>}
        <p className="soft break">{visible(rule.why)}</p>
        {rule.degraded !== undefined && <p>Without the store the request {policies[rule.degraded]}.</p>}
      </div>
      {live !== undefined && (rule.degraded === undefined || rule.degraded === "local") && (
        <Usage live={live} rule={rule} />
      )}
      {rule.estimate !== undefined && <Estimate estimate={rule.estimate} rule={rule} />}
      <StoredState rule={rule} isRefused={live?.allowed === false} />
      <OverrideInForce explained={rule} />
      {mayReset && (
        <div className="buttons">
          <ResetButton rule={rule.rule} reset={reset} isBlocked={live?.reason === "blocked"} />
          <KeyActions explained={rule} attributes={attributes} />
        </div>
      )}
    </li>
  );
}

function VerdictTag({ live, degraded }: { live: Check; degraded: Degraded | undefined }) {
  const tone = !live.allowed ? "bad" : degraded !== undefined ? "warn" : "good";
  return (
    <span className={`tag ${tone}`}>
      {live.allowed ? "allows" : `refuses: ${live.reason}`}
      {degraded !== undefined && `, by its failure policy (${degraded})`}
      {live.mode === "shadow" && ", in shadow"}
    </span>
  );
}

function Usage({ live, rule: { degraded, unit } }: { live: Check; rule: ExplainedRule }) {
  const used = live.limit - live.remaining;
  const width = `${live.limit === 0 ? 0 : Math.min(1, used / live.limit) * 100}%`;
  const mark = `var(--${live.allowed ? "allowed" : "refused"})`;
  return (
    <div className="use">
      <span className="meter">
        <i style={{ width, "--mark": mark } as React.CSSProperties} />
      </span>
      <span className="small">
        {partOf(used, live.limit, unit)} in use
        {degraded === "local" && ", counted here alone"}
        {live.debt !== undefined && `; ${withUnit(live.debt, unit)} of debt to be paid first`}
      </span>
    </div>
  );
}

/** What the request would reserve, and how past estimates turned out. */
function Estimate({ estimate, rule: { unit, degraded } }: { estimate: ExplainedEstimate; rule: ExplainedRule }) {
  const { holds, learned, held, settled, overrun } = estimate;
  return (
    <dl className="pairs small">
      <dt>Would hold</dt>
      <dd>{withUnit(holds, unit)}, until the real cost is settled</dd>
      <dt>Learned</dt>
      <dd>
        {learned !== undefined
          ? withUnit(learned, unit)
          : degraded === undefined
            ? "too little is known yet"
            : "unknown: the store does not answer"}
      </dd>
      <dt>This instance</dt>
      <dd>
        {withUnit(held, unit)} held, {withUnit(settled, unit)} settled, {withUnit(overrun, unit)} beyond what was held
      </dd>
    </dl>
  );
}

function StoredState({ rule, isRefused }: { rule: ExplainedRule; isRefused: boolean }) {
  const state = Object.entries(rule.state ?? {});
  return (
    <dl className="pairs small">
      {rule.key !== undefined && (
        <>
          <dt>Key</dt>
          <dd className="mono break">{rule.key === "" ? "one for all" : visible(rule.key)}</dd>
        </>
      )}
      {rule.degraded === undefined && (
        <>
          <dt>Passes next</dt>
          <dd>{isRefused ? nextTime(rule.nextAllowedAt) : "now"}</dd>
        </>
      )}
      {rule.degraded !== undefined && (
        <>
          <dt>Stored</dt>
          <dd>unknown</dd>
        </>
      )}
      {state.length > 0 && (
        <>
          <dt>Stored</dt>
          <dd className="mono">{state.map(([name, value]) => `${name} ${value}`).join(", ")}</dd>
        </>
      )}
    </dl>
  );
}

/** A window may be as long as years: beyond half a day, a clock time alone would be read as today's. */
function nextTime(at: string | undefined): string {
  if (at === undefined) return "never: no wait helps";
  const leftMs = Date.parse(at) - Date.now();
  return leftMs < 12 * 3_600_000 ? `at ${clockTime(at)}` : `on ${fullTime(at)}`;
}

function ResetButton({ rule, reset, isBlocked }: { rule: string; reset: Reset; isBlocked: boolean }) {
  const [isAsking, setIsAsking] = useState(false);
  return (
    <>
      <button type="button" className="button small" onClick={() => setIsAsking(true)}>
        {isBlocked ? "Unblock" : "Reset"}
        <span className="unseen"> {rule}</span>
      </button>
      {isAsking && (
        <Dialog
          title={`Forget what ${rule} has counted?`}
          onClose={() => setIsAsking(false)}
          onSubmit={() => {
            reset.mutate(rule);
            setIsAsking(false);
          }}
          footer={
            <button type="submit" className="button main bad">
              Reset the key
            </button>
          }
        >
          <p>
            The counter starts empty, as if the key had never sent a request. Other keys and rules stay as they are. The
            audit log records the reset and its author.
          </p>
        </Dialog>
      )}
    </>
  );
}
