/** The rules in force: found by any word of them, a hundred to a page, each with what passed and what it refused in the last hour. */
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useMemo, useState } from "react";
import { Link } from "wouter";
import { rulesQuery, statsQuery } from "../api/queries.js";
import type { Rule, RuleStats, StatsView } from "../api/shapes.js";
import { Search } from "../components/controls.js";
import { AttributeList, GateBar } from "../components/figures.js";
import { count, share } from "../components/format.js";
import { Empty, Page, Panel, Read } from "../components/panel.js";
import { RuleTags } from "../components/rule-tags.js";
import { TimeBar } from "../range/time-bar.js";
import { describeNumbers } from "../rule-editor/describe-rule.js";
import { NeedsRole, useMay } from "../shell/session.js";
import { type ShownTime, timeWords } from "../time/time-address.js";
import { useTime } from "../time/use-time.js";
import { matcher } from "./rule-search.js";

const PER_PAGE = 100;

export function RulesPage() {
  const rules = useQuery(rulesQuery);
  const { time } = useTime();
  const stats = useQuery(statsQuery({ time }));
  const mayEdit = useMay("editor");
  const [search, setSearch] = useState("");
  const words = useDeferredValue(search);
  return (
    <Page
      title="Rules"
      about={
        rules.data === undefined
          ? undefined
          : `${count(rules.data.rules.length)} in force, version ${rules.data.version}. A request must pass all that match it.`
      }
      actions={
        <>
          <TimeBar />
          {mayEdit ? (
            <Link href="/new-rule" className="button main">
              New rule
            </Link>
          ) : (
            <NeedsRole needed="editor" to="change rules" />
          )}
        </>
      }
    >
      <Search
        label="Search rules"
        placeholder="Search by id, description, key, match …"
        value={search}
        onChange={setSearch}
      />
      <Read of={rules} what="rules">
        {(data) => (
          <RuleTable key={words} rules={data.rules} search={words} stats={stats.data} column={columnName(time)} />
        )}
      </Read>
    </Page>
  );
}

/** "Last hour". */
function columnName(time: ShownTime): string {
  const words = timeWords(time).replace(/^the /, "");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

interface RuleTableProps {
  readonly rules: readonly Rule[];
  readonly search: string;
  readonly stats: StatsView | undefined;
  readonly column: string;
}

function RuleTable({ rules, search, stats, column }: RuleTableProps) {
  const [from, setFrom] = useState(0);
  const found = useMemo(() => rules.filter(matcher(search)), [rules, search]);
  const byRule = useMemo(() => new Map((stats?.rules ?? []).map((one) => [one.rule, one])), [stats]);
  const isCounted = stats?.total.points.some(({ coveredMs }) => coveredMs > 0) ?? false;
  const time = stats?.scope === "instance" ? `${column}, this instance` : column;
  if (found.length === 0) {
    return (
      <Panel>
        {rules.length === 0 ? (
          <Empty title="There are no rules.">Every request passes.</Empty>
        ) : (
          <Empty title="No rule matches.">{count(rules.length)} were searched.</Empty>
        )}
      </Panel>
    );
  }
  const shown = found.slice(from, from + PER_PAGE);
  return (
    <Panel flush>
      <table className="cards rules">
        <thead>
          <tr>
            <th scope="col">Rule</th>
            <th scope="col">Applies to</th>
            <th scope="col">Limit</th>
            <th scope="col">{time}</th>
            <th scope="col" className="number">
              Refused
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((rule) => (
            <RuleRow key={rule.id} rule={rule} stats={byRule.get(rule.id)} isCounted={isCounted} time={time} />
          ))}
        </tbody>
      </table>
      {found.length > PER_PAGE && (
        <div className="pager">
          <span className="soft" role="status">
            {from + 1} to {Math.min(found.length, from + PER_PAGE)} of {count(found.length)}
          </span>
          <div className="buttons">
            <button
              type="button"
              className="button small"
              disabled={from === 0}
              onClick={() => setFrom(from - PER_PAGE)}
            >
              Back
            </button>
            <button
              type="button"
              className="button small"
              disabled={from + PER_PAGE >= found.length}
              onClick={() => setFrom(from + PER_PAGE)}
            >
              Next
            </button>
          </div>
        </div>
      )}
    </Panel>
  );
}

function RuleRow({
  rule,
  stats,
  isCounted,
  time,
}: {
  rule: Rule;
  stats: RuleStats | undefined;
  /** Whether anything of this time is known. */
  isCounted: boolean;
  time: string;
}) {
  const refused = (stats?.refused ?? 0) + (stats?.shadowRefused ?? 0);
  const total = (stats?.allowed ?? 0) + refused;
  const isShadow = (stats?.shadowRefused ?? 0) > 0 && stats?.refused === 0;
  return (
    <tr>
      <th scope="row" className="rule-name">
        <Link href={`/rules/${rule.id}`}>{rule.id}</Link> <RuleTags rule={rule} />
        {rule.description !== undefined && <p>{rule.description}</p>}
      </th>
      <td data-label="Applies to">
        <span className="applies">
          <AttributeList attributes={rule.match ?? {}} none="every request" />
          <span className="soft small">
            {rule.key.length === 0 ? "one counter for all" : `counted by ${rule.key.join(", ")}`}
          </span>
        </span>
      </td>
      <td data-label="Limit">
        <span>
          {describeNumbers(rule)}
          <span className="soft small numbers-kind">{rule.algorithm}</span>
        </span>
      </td>
      <td data-label={time}>
        <span className="traffic">
          {(stats !== undefined || isCounted) && (
            <GateBar allowed={stats?.allowed ?? 0} refused={refused} isShadow={isShadow} />
          )}
          <span className="soft small">
            {stats === undefined ? (isCounted ? "no traffic" : "unknown") : `${count(stats.allowed)} allowed`}
          </span>
        </span>
      </td>
      <td data-label="Refused" className="number">
        {stats === undefined ? "–" : share(total === 0 ? 0 : refused / total)}
        {isShadow && <span className="soft small numbers-kind">in shadow</span>}
      </td>
    </tr>
  );
}
