/** The rules in force: searched, filtered and sorted by the URL, paginated, with bulk changes. */
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useMemo, useState } from "react";
import { Link } from "wouter";
import { rulesQuery, statsQuery } from "../api/queries.js";
import type { RulesView, StatsView } from "../api/shapes.js";
import { Search } from "../components/controls.js";
import { count, visible } from "../components/format.js";
import { Empty, Page, Panel, Read } from "../components/panel.js";
import { isCounted } from "../components/traffic-points.js";
import { useStable } from "../components/use-stable.js";
import { TimeBar } from "../range/time-bar.js";
import { RulesReadOnly, useMayEditRules } from "../shell/session.js";
import { type ShownTime, timeWords } from "../time/time-address.js";
import { useParameters } from "../time/use-parameters.js";
import { useTime } from "../time/use-time.js";
import { BulkBar } from "./rule-bulk.js";
import { attributesIn, filterRules, type ListQuery, listQuery, pageSizes, ruleStates, sortRules } from "./rule-list.js";
import { RuleTable } from "./rule-table.js";

export function RulesPage() {
  const rules = useQuery(rulesQuery);
  const { time } = useTime();
  // Deferred, so that figures of thousands of rules do not delay typing and clicking.
  const stats = useDeferredValue(useQuery(statsQuery({ time })).data);
  const mayEdit = useMayEditRules();
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
            <RulesReadOnly to="change rules" />
          )}
        </>
      }
    >
      <Read of={rules} what="rules">
        {(view) => <RuleList view={view} stats={stats} column={columnName(time)} mayEdit={mayEdit} />}
      </Read>
    </Page>
  );
}

/** "Last hour". */
function columnName(time: ShownTime): string {
  const words = timeWords(time).replace(/^the /, "");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

interface RuleListProps {
  readonly view: RulesView;
  readonly stats: StatsView | undefined;
  readonly column: string;
  readonly mayEdit: boolean;
}

function RuleList({ view: { rules, version }, stats, column, mayEdit }: RuleListProps) {
  const { search, set } = useParameters();
  const deferred = useDeferredValue(search);
  const query = useMemo(() => listQuery(deferred), [deferred]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const byRule = useMemo(() => new Map((stats?.rules ?? []).map((one) => [one.rule, one])), [stats]);
  const filtered = useMemo(() => filterRules(rules, query), [rules, query]);
  const found = useMemo(() => sortRules(filtered, query, byRule), [filtered, query, byRule]);
  const choose = useStable((ids: readonly string[], isChosen: boolean): void => {
    const next = new Set(chosen);
    for (const id of ids)
      if (isChosen) next.add(id);
      else next.delete(id);
    setChosen(next);
  });
  const sortBy = useStable((sort: string) => set({ sort, page: undefined }));
  const filterByTag = useStable((tag: string) => set({ tag, page: undefined }));
  const pages = Math.max(1, Math.ceil(found.length / query.perPage));
  const page = Math.min(query.page, pages);
  const from = (page - 1) * query.perPage;
  const shown = useMemo(() => found.slice(from, from + query.perPage), [found, from, query.perPage]);
  const sort = query.sort === "" ? "" : `${query.isDescending ? "-" : ""}${query.sort}`;
  return (
    <>
      <Filters
        rules={rules}
        query={listQuery(search)}
        onChange={(changes, replace) => set({ ...changes, page: undefined }, { replace })}
      />
      {chosen.size > 0 && <BulkBar chosen={chosen} version={version} onClear={() => setChosen(new Set())} />}
      {found.length === 0 ? (
        <Panel>
          {rules.length === 0 ? (
            <Empty title="There are no rules.">Every request passes.</Empty>
          ) : (
            <Empty title="No rule matches.">{count(rules.length)} were searched.</Empty>
          )}
        </Panel>
      ) : (
        <Panel flush>
          <RuleTable
            rules={shown}
            stats={byRule}
            isQuiet={isCounted(stats) && stats.complete}
            time={stats?.scope === "instance" ? `${column}, this instance` : column}
            sort={sort}
            onSort={sortBy}
            chosen={mayEdit ? chosen : undefined}
            onChoose={choose}
            onTag={filterByTag}
          />
          <Pager
            from={from}
            total={found.length}
            query={query}
            onPage={(next) => set({ page: next === 1 ? undefined : String(next) })}
            onSize={(size) => set({ per: size === 100 ? undefined : String(size), page: undefined })}
          />
        </Panel>
      )}
    </>
  );
}

interface FiltersProps {
  readonly rules: RulesView["rules"];
  readonly query: ListQuery;
  readonly onChange: (changes: Record<string, string>, replace: boolean) => void;
}

function Filters({ rules, query, onChange }: FiltersProps) {
  const offered = useMemo(() => {
    const sorted = (values: Iterable<string>) => [...new Set(values)].sort();
    return {
      algorithms: sorted(rules.map(({ algorithm }) => algorithm)),
      attributes: sorted(rules.flatMap(attributesIn)),
      tags: sorted(rules.flatMap(({ tags = [] }) => tags)),
    };
  }, [rules]);
  const plain = (values: readonly string[]) => values.map((value) => ({ value, label: value }));
  const select = (name: "state" | "algorithm" | "attribute" | "tag", label: string, options: readonly Option[]) => (
    <select
      className="input small"
      aria-label={label}
      value={query[name]}
      onChange={(event) => onChange({ [name]: event.target.value }, false)}
    >
      <option value="">{label}: any</option>
      {/* A value from a shared link that no rule has any more. */}
      {query[name] !== "" && !options.some(({ value }) => value === query[name]) && (
        <option value={query[name]}>{visible(query[name])}</option>
      )}
      {options.map(({ value, label: text }) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
  return (
    <div className="filters">
      <Search
        label="Search rules"
        placeholder="Search by id, description, key, match …"
        value={query.search}
        onChange={(q) => onChange({ q }, true)}
      />
      {select("state", "State", ruleStates)}
      {select("algorithm", "Algorithm", plain(offered.algorithms))}
      {select("attribute", "Attribute", plain(offered.attributes))}
      {(offered.tags.length > 0 || query.tag !== "") && select("tag", "Tag", plain(offered.tags))}
    </div>
  );
}

interface Option {
  readonly value: string;
  readonly label: string;
}

interface PagerProps {
  readonly from: number;
  readonly total: number;
  readonly query: ListQuery;
  readonly onPage: (page: number) => void;
  readonly onSize: (size: number) => void;
}

function Pager({ from, total, query: { perPage }, onPage, onSize }: PagerProps) {
  if (total <= pageSizes[0]) return null;
  const page = from / perPage + 1;
  return (
    <div className="pager">
      <span className="soft" role="status">
        {count(from + 1)} to {count(Math.min(total, from + perPage))} of {count(total)}
      </span>
      <div className="buttons">
        <select
          className="input small"
          aria-label="Rules a page"
          value={perPage}
          onChange={(event) => onSize(Number(event.target.value))}
        >
          {pageSizes.map((size) => (
            <option key={size} value={size}>
              {size} a page
            </option>
          ))}
        </select>
        <button type="button" className="button small" disabled={from === 0} onClick={() => onPage(page - 1)}>
          Back
        </button>
        <button
          type="button"
          className="button small"
          disabled={from + perPage >= total}
          onClick={() => onPage(page + 1)}
        >
          Next
        </button>
      </div>
    </div>
  );
}
