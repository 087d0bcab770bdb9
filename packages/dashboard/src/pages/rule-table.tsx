/** One page of the list of rules, with boxes to choose rules for a change of many. */
import { memo, useMemo } from "react";
import { Link } from "wouter";
import type { Rule, RuleStats } from "../api/shapes.js";
import { AttributeList, GateBar } from "../components/figures.js";
import { count, share, visible } from "../components/format.js";
import { RuleTags } from "../components/rule-tags.js";
import { SortedHead } from "../components/sorted-head.js";
import { useGrowing } from "../components/use-growing.js";
import { describeNumbers } from "../rule-editor/describe-rule.js";
import { refusedShare } from "./rule-list.js";

interface RuleTableProps {
  readonly rules: readonly Rule[];
  readonly stats: ReadonlyMap<string, RuleStats>;
  /** Whether anything of this time is known. */
  readonly isCounted: boolean;
  /** The head of the column of traffic. */
  readonly time: string;
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  /** Absent for viewers. */
  readonly chosen: ReadonlySet<string> | undefined;
  readonly onChoose: (ids: readonly string[], isChosen: boolean) => void;
  readonly onTag: (tag: string) => void;
}

/** Drawn anew only when its own rows change: not at each keystroke in the search above it. */
export const RuleTable = memo(function RuleTable(props: RuleTableProps) {
  const { rules, stats, isCounted, time, sort, onSort, chosen, onChoose, onTag } = props;
  const shown = useGrowing(useMemo(() => rules.map(({ id }) => id), [rules]));
  const allChosen = chosen !== undefined && rules.every(({ id }) => chosen.has(id));
  return (
    <table className="cards rules" aria-rowcount={rules.length + 1}>
      <thead>
        <tr>
          {chosen !== undefined && (
            <th scope="col" className="box-column">
              <input
                type="checkbox"
                aria-label="Choose all rules of this page"
                checked={allChosen}
                onChange={() =>
                  onChoose(
                    rules.map(({ id }) => id),
                    !allChosen,
                  )
                }
              />
            </th>
          )}
          <SortedHead name="rule" sort={sort} onSort={onSort}>
            Rule
          </SortedHead>
          <SortedHead name="applies" sort={sort} onSort={onSort}>
            Applies to
          </SortedHead>
          <SortedHead name="limit" sort={sort} onSort={onSort}>
            Limit
          </SortedHead>
          <SortedHead name="traffic" sort={sort} onSort={onSort}>
            {time}
          </SortedHead>
          <SortedHead name="refused" sort={sort} onSort={onSort} isNumber>
            Refused
          </SortedHead>
        </tr>
      </thead>
      <tbody>
        {rules.slice(0, shown).map((rule) => (
          <RuleRow
            key={rule.id}
            rule={rule}
            stats={stats.get(rule.id)}
            isCounted={isCounted}
            time={time}
            isChosen={chosen?.has(rule.id)}
            onChoose={onChoose}
            onTag={onTag}
          />
        ))}
      </tbody>
    </table>
  );
});

interface RuleRowProps extends RuleCellsProps {
  /** Undefined: no box to choose it by. */
  readonly isChosen: boolean | undefined;
  readonly onChoose: (ids: readonly string[], isChosen: boolean) => void;
}

const RuleRow = memo(function RuleRow({ isChosen, onChoose, ...cells }: RuleRowProps) {
  const { id } = cells.rule;
  return (
    <tr>
      {isChosen !== undefined && (
        <td className="box-column">
          <input
            type="checkbox"
            aria-label={`Choose ${id}`}
            checked={isChosen}
            onChange={() => onChoose([id], !isChosen)}
          />
        </td>
      )}
      <RuleCells {...cells} />
    </tr>
  );
}, isSameRow);

/** Figures are read every few seconds, for all rules: a row whose own did not move stays as it is. */
function isSameRow({ stats: was, ...before }: RuleRowProps, { stats: now, ...after }: RuleRowProps): boolean {
  const isSame = (Object.keys(after) as (keyof typeof after)[]).every((name) => before[name] === after[name]);
  if (!isSame || was === now) return isSame;
  return (
    was !== undefined &&
    now !== undefined &&
    was.allowed === now.allowed &&
    was.refused === now.refused &&
    was.shadowRefused === now.shadowRefused
  );
}

interface RuleCellsProps {
  readonly rule: Rule;
  readonly stats: RuleStats | undefined;
  readonly isCounted: boolean;
  readonly time: string;
  readonly onTag: (tag: string) => void;
}

function RuleCells({ rule, stats, isCounted, time, onTag }: RuleCellsProps) {
  const refused = (stats?.refused ?? 0) + (stats?.shadowRefused ?? 0);
  const isShadow = (stats?.shadowRefused ?? 0) > 0 && stats?.refused === 0;
  return (
    <>
      <th scope="row" className="rule-name">
        <Link href={`/rules/${rule.id}`}>{rule.id}</Link> <RuleTags rule={rule} />
        {rule.tags?.map((tag) => (
          <button
            type="button"
            className="tag word"
            key={tag}
            title={`Rules with the tag ${tag}`}
            onClick={() => onTag(tag)}
          >
            #{tag}
          </button>
        ))}
        {rule.description !== undefined && <p>{visible(rule.description)}</p>}
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
        {stats === undefined ? "–" : share(refusedShare(stats))}
        {isShadow && <span className="soft small numbers-kind">in shadow</span>}
      </td>
    </>
  );
}
