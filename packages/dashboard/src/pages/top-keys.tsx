/**
 * The keys with the most requests or refusals over all instances; one row per client, whichever rules count it. Counts come from a bounded
 * sketch, with its error stated.
 */
import { useQuery } from "@tanstack/react-query";
import { memo, useDeferredValue, useMemo, useState } from "react";
import { topKeysParameters, topKeysQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import type { TopKey, TopKeysView } from "../api/shapes.js";
import { Choice, Search } from "../components/controls.js";
import { GateBar } from "../components/figures.js";
import { clockTime, count, share, visible } from "../components/format.js";
import { LongRows } from "../components/long-rows.js";
import { Empty, Page, Panel, Read } from "../components/panel.js";
import { KeyLink } from "../keys/key-cells.js";
import { rankingBehind } from "../keys/still-order.js";
import { TimeBar } from "../range/time-bar.js";
import { RowLink } from "../shell/row-link.js";
import { compareOffsetMs } from "../time/time-address.js";
import { useParameters } from "../time/use-parameters.js";
import { useTime } from "../time/use-time.js";

const orders = [
  { value: "traffic", label: "By traffic" },
  { value: "refusals", label: "By refusals" },
] as const;

const groups = [
  { value: "client", label: "By client" },
  { value: "rule", label: "By rule" },
] as const;

const PER_PAGE = 100;
const MOST_KEYS = 2_000;

export function TopKeysPage() {
  const { time, compare: chosen } = useTime();
  // Keys are kept for two days, so a comparison with last week, which charts support, is ignored here.
  const compare = chosen === "week" ? undefined : chosen;
  const { search, set } = useParameters();
  const params = new URLSearchParams(search);
  const by = params.get("by") === "refusals" ? "refusals" : "traffic";
  const isGrouped = params.get("group") !== "rule";
  const rule = params.get("rule") ?? "";
  const typed = params.get("q") ?? "";
  const words = useDeferredValue(typed.trim());
  const lastPage = MOST_KEYS / PER_PAGE;
  const page = Math.max(1, Math.min(lastPage, Math.floor(Number(params.get("page") ?? 1)) || 1));
  const asked = {
    time,
    by,
    ...(isGrouped && { group: "client" as const }),
    ...(words !== "" && { search: words }),
    ...(rule !== "" && { rule }),
  } as const;
  const { keys, view: shown, leave } = useRanking(asked, page);
  const offsetMs = compare === undefined ? 0 : compareOffsetMs(compare, time);
  const before = useQuery({
    ...topKeysQuery({ ...asked, limit: 500, offsetMs }),
    enabled: compare !== undefined,
  });
  return (
    <Page
      title="Top keys"
      about={aboutKeys(keys.data)}
      actions={
        <>
          <Choice label="Order" value={by} options={orders} onChange={(next) => set({ by: next, page: undefined })} />
          <Choice
            label="Rows"
            value={isGrouped ? "client" : "rule"}
            options={groups}
            onChange={(next) => set({ group: next === "rule" ? "rule" : undefined, page: undefined })}
          />
          <TimeBar compareWith="keys" />
        </>
      }
    >
      <KeyFilters
        typed={typed}
        rule={rule}
        onType={(q) => set({ q, page: undefined }, { replace: true })}
        onAllRules={() => set({ rule: undefined, page: undefined })}
      />
      <Panel flush>
        <Read of={keys} what="top keys">
          {(view) =>
            view.keys.length === 0 ? (
              <Empty title="No keys.">
                {words === ""
                  ? "Nothing was counted in this time, or no key came often enough to stand out."
                  : "No listed key contains that text."}
              </Empty>
            ) : (
              <>
                <KeyTable keys={shown?.keys ?? []} before={compare === undefined ? undefined : before.data} />
                <KeyPager
                  page={page}
                  shown={shown?.keys.length ?? 0}
                  hasMore={shown?.hasMore ?? false}
                  asOf={page === 1 ? undefined : clockTime(keys.dataUpdatedAt)}
                  onPage={(next) => {
                    if (page === 1) leave(view.keys);
                    set({ page: next === 1 ? undefined : String(next) });
                  }}
                />
              </>
            )
          }
        </Read>
      </Panel>
    </Page>
  );
}

type Asked = Pick<Parameters<typeof topKeysQuery>[0], "time" | "by" | "group" | "search" | "rule">;

/** The first page as it was left, for which query, and how often. */
interface LeftPage {
  readonly name: string;
  readonly keys: readonly TopKey[];
  readonly times: number;
}

/**
 * The first page follows the traffic. The ranking after it is read once, when that page is left, and frozen: otherwise a key that moves
 * could be on two pages, or on none.
 */
function useRanking(asked: Asked, page: number) {
  const name = JSON.stringify(asked);
  const [left, setLeft] = useState<LeftPage>({ name, keys: [], times: 0 });
  const live = useQuery({ ...topKeysQuery({ ...asked, limit: PER_PAGE }), enabled: page === 1 });
  const query = topKeysQuery({ ...asked, limit: MOST_KEYS });
  const still = useQuery({
    queryKey: [...query.queryKey, left.times] as const,
    queryFn: () => request<TopKeysView>("/keys/top", { query: topKeysParameters({ ...asked, limit: MOST_KEYS }) }),
    enabled: page > 1,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const leave = (keys: readonly TopKey[]) => setLeft({ name, keys, times: left.times + 1 });
  const keys = page === 1 ? live : still;
  const view = useMemo(() => {
    if (keys.data === undefined) return undefined;
    if (page === 1) return { keys: keys.data.keys, hasMore: keys.data.more };
    const ranking = rankingBehind(left.name === name ? left.keys : [], keys.data.keys, nameOf);
    return {
      keys: ranking.slice((page - 1) * PER_PAGE, page * PER_PAGE),
      hasMore: page * PER_PAGE < Math.min(MOST_KEYS, ranking.length),
    };
  }, [keys.data, left, name, page]);
  return { keys, view, leave };
}

interface KeyFiltersProps {
  readonly typed: string;
  /** "" for all. */
  readonly rule: string;
  readonly onType: (typed: string) => void;
  readonly onAllRules: () => void;
}

function KeyFilters({ typed, rule, onType, onAllRules }: KeyFiltersProps) {
  return (
    <div className="filters">
      <Search label="Search keys" placeholder="Search by value …" value={typed} onChange={onType} />
      {rule !== "" && (
        <button type="button" className="button small" onClick={onAllRules} title="Show keys of all rules">
          Of the rule {visible(rule)} <span aria-hidden="true">×</span>
          <span className="unseen">: show all rules</span>
        </button>
      )}
    </div>
  );
}

interface KeyPagerProps {
  readonly page: number;
  readonly shown: number;
  readonly hasMore: boolean;
  /** The time of a frozen page. */
  readonly asOf: string | undefined;
  readonly onPage: (page: number) => void;
}

function KeyPager({ page, shown, hasMore, asOf, onPage }: KeyPagerProps) {
  if (!hasMore && page === 1) return null;
  const first = (page - 1) * PER_PAGE + 1;
  return (
    <div className="pager">
      <span className="soft" role="status">
        {count(first)} to {count(first - 1 + shown)}
        {asOf !== undefined && `, as of ${asOf}`}
      </span>
      <div className="buttons">
        <button type="button" className="button small" disabled={page === 1} onClick={() => onPage(page - 1)}>
          Back
        </button>
        <button type="button" className="button small" disabled={!hasMore} onClick={() => onPage(page + 1)}>
          Next
        </button>
      </div>
    </div>
  );
}

function aboutKeys(view: TopKeysView | undefined): string {
  if (view === undefined) return "The keys with the most requests, and with the most refusals.";
  if (view.keys.length === 0) return ofWhom(view);
  if (view.maxError === 0) return `${ofWhom(view)} Counts are exact.`;
  return `${ofWhom(view)} Counts are at most ${count(view.maxError)} too high, never too low.`;
}

function ofWhom({ scope, window }: TopKeysView): string {
  if (scope === "fleet") return "Of all instances.";
  return `Of this instance alone, in the ${window === "hour" ? "quarter hour" : "hour"} that lasts: others cannot be asked.`;
}

/** Independent of the order of attributes. */
function nameOf({ rule, rules, attributes, digest }: TopKey): string {
  if (digest !== undefined) return JSON.stringify([rules === undefined ? rule : "", digest]);
  const entries = Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([rules === undefined ? rule : "", entries]);
}

interface KeyTableProps {
  readonly keys: readonly TopKey[];
  readonly before?: TopKeysView | undefined;
}

/** Memoised: does not re-render at each keystroke in the search above it. */
export const KeyTable = memo(function KeyTable({ keys, before }: KeyTableProps) {
  const counted = useMemo(() => before && new Map(before.keys.map((key) => [nameOf(key), key.count])), [before]);
  return (
    <table className={`cards long keys ${counted === undefined ? "" : "compared"}`} aria-rowcount={keys.length + 1}>
      <thead>
        <tr>
          <th scope="col">Key</th>
          <th scope="col">Rule</th>
          <th scope="col" className="number">
            Checks
          </th>
          {counted !== undefined && (
            <th scope="col" className="number">
              Before
            </th>
          )}
          <th scope="col" className="number">
            Refused
          </th>
          <th scope="col">Passed and refused</th>
          <th scope="col">Peak use</th>
        </tr>
      </thead>
      <LongRows rows={keys} nameOf={nameOf}>
        {(key, name) => <KeyRow key={name} of={key} isCompared={counted !== undefined} before={counted?.get(name)} />}
      </LongRows>
    </table>
  );
});

interface KeyRowProps {
  readonly of: TopKey;
  readonly isCompared: boolean;
  readonly before: number | undefined;
}

const KeyRow = memo(function KeyRow({ of: key, isCompared, before }: KeyRowProps) {
  return (
    <tr>
      <td>
        <KeyLink attributes={key.attributes} digest={key.digest} />
      </td>
      <td data-label="Rule">
        <RulesOfKey of={key} />
      </td>
      <td data-label="Checks" className="number">
        {count(key.count)}
      </td>
      {isCompared && (
        <td data-label="Before" className="number">
          <Change now={key.count} before={before} />
        </td>
      )}
      <td data-label="Refused" className="number">
        {count(key.refused)}
      </td>
      <td data-label="Passed">
        <GateBar allowed={Math.max(0, key.count - key.refused)} refused={key.refused} />
      </td>
      <td data-label="Peak use">
        <Peak share={key.peakUtilisation} />
      </td>
    </tr>
  );
});

function RulesOfKey({ of: { rule, rules = [{ rule, count: 0, refused: 0 }] } }: { of: TopKey }) {
  return (
    <span className="rules-of-key">
      {rules.map((one) => (
        <RowLink
          key={one.rule}
          href={`/rules/${one.rule}`}
          className="mono"
          {...(rules.length > 1 && { title: `${count(one.count)} checks, ${count(one.refused)} refused` })}
        >
          {one.rule}
        </RowLink>
      ))}
    </span>
  );
}

function Change({ now, before }: { now: number; before: number | undefined }) {
  if (before === undefined) return <span className="soft">not listed</span>;
  const by = before === 0 ? "" : ` (${now >= before ? "+" : "−"}${share(Math.abs(now - before) / before)})`;
  return (
    <>
      {count(before)}
      <span className="soft small">{by}</span>
    </>
  );
}

function Peak({ share: used }: { share: number }) {
  const mark = used >= 0.9 ? "refused" : used >= 0.7 ? "shadow" : "allowed";
  const style = { width: `${Math.min(1, used) * 100}%`, "--mark": `var(--${mark})` } as React.CSSProperties;
  return (
    <span className="peak">
      <span className="meter">
        <i style={style} />
      </span>
      <span className="small">{share(used)}</span>
    </span>
  );
}
