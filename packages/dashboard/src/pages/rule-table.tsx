/** One page of the list of rules, with checkboxes to select rules for a bulk change. */
import { type CSSProperties, memo } from "react";
import type { Rule, RuleStats } from "../api/shapes.js";
import { AttributeList, GateBar } from "../components/figures.js";
import { count, share, visible } from "../components/format.js";
import { LongRows } from "../components/long-rows.js";
import { RuleTags } from "../components/rule-tags.js";
import { SortedHead } from "../components/sorted-head.js";
import { describeNumbers } from "../rule-editor/describe-rule.js";
import { RowLink } from "../shell/row-link.js";
import { refusedShare } from "./rule-list.js";

interface RuleTableProps {
  readonly rules: readonly Rule[];
  readonly stats: ReadonlyMap<string, RuleStats>;
  /** Whether a rule without figures had no traffic; otherwise its traffic is unknown. */
  readonly isQuiet: boolean;
  /** Heading of the traffic column. */
  readonly time: string;
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  /** Absent for viewers. */
  readonly chosen: ReadonlySet<string> | undefined;
  readonly onChoose: (ids: readonly string[], isChosen: boolean) => void;
  readonly onTag: (tag: string) => void;
}

/** Memoised: does not re-render at each keystroke in the search above it. */
export const RuleTable = memo(function RuleTable(props: RuleTableProps) {
  const { rules, stats, isQuiet, time, sort, onSort, chosen, onChoose, onTag } = props;
  const allChosen = chosen !== undefined && rules.every(({ id }) => chosen.has(id));
  return (
    <table
      className={`cards long rules ${chosen === undefined ? "" : "choosable"}`}
      aria-rowcount={rules.length + 1}
      // On a phone each row shows column names: this way a new time changes one property, and no row re-renders.
      style={{ "--time": JSON.stringify(time) } as CSSProperties}
    >
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
      <LongRows rows={rules} nameOf={nameOf}>
        {(rule, name) => (
          <RuleRow
            key={name}
            rule={rule}
            stats={stats.get(rule.id)}
            isQuiet={isQuiet}
            isChosen={chosen?.has(rule.id)}
            onChoose={onChoose}
            onTag={onTag}
          />
        )}
      </LongRows>
    </table>
  );
});

function nameOf({ id }: Rule): string {
  return id;
}

interface RuleRowProps extends RuleCellsProps {
  /** Undefined: no checkbox. */
  readonly isChosen: boolean | undefined;
  readonly onChoose: (ids: readonly string[], isChosen: boolean) => void;
}

/** Re-renders when its checkbox changes: ticking 250 at once re-renders only the checkboxes. */
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
});

interface RuleCellsProps {
  readonly rule: Rule;
  readonly stats: RuleStats | undefined;
  readonly isQuiet: boolean;
  readonly onTag: (tag: string) => void;
}

/** Figures of all rules are polled every few seconds: cells with unchanged figures do not re-render. */
function isSame({ stats: was, ...before }: RuleCellsProps, { stats: now, ...after }: RuleCellsProps): boolean {
  const isSameRule = (Object.keys(after) as (keyof typeof after)[]).every((name) => before[name] === after[name]);
  if (!isSameRule || was === now) return isSameRule;
  return (
    was !== undefined &&
    now !== undefined &&
    was.allowed === now.allowed &&
    was.refused === now.refused &&
    was.shadowRefused === now.shadowRefused
  );
}

const RuleCells = memo(function RuleCells({ rule, stats, isQuiet, onTag }: RuleCellsProps) {
  const refused = (stats?.refused ?? 0) + (stats?.shadowRefused ?? 0);
  const isShadow = (stats?.shadowRefused ?? 0) > 0 && stats?.refused === 0;
  return (
    <>
      <th scope="row" className="rule-name">
        <RowLink href={`/rules/${rule.id}`}>{rule.id}</RowLink> <RuleTags rule={rule} />
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
      <td data-label="Traffic" className="timed">
        <span className="traffic">
          {(stats !== undefined || isQuiet) && (
            <GateBar allowed={stats?.allowed ?? 0} refused={refused} isShadow={isShadow} />
          )}
          <span className="soft small">
            {stats === undefined ? (isQuiet ? "no traffic" : "unknown") : `${count(stats.allowed)} allowed`}
          </span>
        </span>
      </td>
      <td data-label="Refused" className="number">
        {stats === undefined ? "–" : share(refusedShare(stats))}
        {isShadow && <span className="soft small numbers-kind">in shadow</span>}
      </td>
    </>
  );
}, isSame);
