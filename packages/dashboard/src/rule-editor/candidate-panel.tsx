/** Compares the candidate with the live numbers: what it would have refused on the same traffic; and promotes it. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { statsQuery } from "../api/queries.js";
import type { ComparisonView, Rule } from "../api/shapes.js";
import { GateBar } from "../components/figures.js";
import { count, dayTime, share } from "../components/format.js";
import { Panel } from "../components/panel.js";
import { RulesReadOnly, useMayEditRules } from "../shell/session.js";
import { useTime } from "../time/use-time.js";
import { ChangeDialog } from "./change-dialog.js";
import { describeNumbers } from "./describe-rule.js";

const nothing: ComparisonView = { bothAllowed: 0, bothRefused: 0, onlyLiveRefused: 0, onlyCandidateRefused: 0 };

export function CandidatePanel({
  rule,
  version,
  onPromoted,
}: {
  rule: Rule;
  version: number;
  onPromoted: (made: number) => void;
}) {
  const { time } = useTime();
  const [isAsking, setIsAsking] = useState(false);
  const mayEdit = useMayEditRules();
  const stats = useQuery(statsQuery({ time, rule: rule.id }));
  const own = stats.data?.rules.find((one) => one.rule === rule.id);
  const { bothAllowed, bothRefused, onlyLiveRefused, onlyCandidateRefused, sinceMs } = own?.comparison ?? nothing;
  const live = { allowed: bothAllowed + onlyCandidateRefused, refused: bothRefused + onlyLiveRefused };
  const candidate = { allowed: bothAllowed + onlyLiveRefused, refused: bothRefused + onlyCandidateRefused };
  return (
    <Panel
      title="Candidate beside live"
      about="On the same requests, since the rule and its candidate have these numbers. Each has a counter of its own; only the live one refuses."
    >
      <div className="versus">
        <Side title="Live" numbers={describeNumbers(rule)} kind={rule.algorithm} outcome="refused" {...live} />
        <Side
          title="Candidate"
          numbers={describeNumbers({ ...rule, ...rule.candidate } as Rule)}
          kind={rule.candidate?.algorithm ?? rule.algorithm}
          outcome="would have refused"
          {...candidate}
        />
      </div>
      {sinceMs !== undefined && (
        <p>
          Since {dayTime(sinceMs)}, of {count(live.allowed + live.refused)} requests: the candidate alone would have
          refused {count(onlyCandidateRefused)}, and let pass {count(onlyLiveRefused)} that were refused.
          {stats.data?.scope === "instance" && " Of this instance alone."}
        </p>
      )}
      {mayEdit ? (
        <button type="button" className="button main" onClick={() => setIsAsking(true)}>
          Promote the candidate
        </button>
      ) : (
        <RulesReadOnly to="promote it" />
      )}
      {isAsking && (
        <ChangeDialog
          title={`Promote the candidate of ${rule.id}`}
          verb="Promote"
          change={{ method: "POST", path: `/rules/${rule.id}/promote`, rule: rule.id, base: version }}
          onClose={() => setIsAsking(false)}
          onDone={({ version: made }) => {
            setIsAsking(false);
            onPromoted(made);
          }}
        />
      )}
    </Panel>
  );
}

function Side({
  title,
  numbers,
  kind,

  outcome,
  allowed,
  refused,
}: {
  title: string;
  numbers: string;
  kind: string;

  outcome: string;
  allowed: number;
  refused: number;
}) {
  const total = allowed + refused;
  return (
    <div className="side">
      <h3>{title}</h3>
      <p>
        {numbers} <span className="soft small">{kind}</span>
      </p>
      <p className="big">
        {count(refused)} <small>{outcome}</small>
      </p>
      <GateBar allowed={allowed} refused={refused} />
      <p className="soft small">{total === 0 ? "no traffic yet" : `${share(refused / total)} of ${count(total)}`}</p>
    </div>
  );
}
