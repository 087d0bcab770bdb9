/** The list of rules as the URL requests it: filtered, sorted, one page. Pure. */
import type { Rule, RuleStats } from "../api/shapes.js";
import { matcher } from "./rule-search.js";

const sortNames = ["rule", "applies", "limit", "traffic", "refused"] as const;
type SortName = (typeof sortNames)[number];

export const ruleStates = [
  { value: "enforce", label: "Enforced" },
  { value: "shadow", label: "In shadow" },
  { value: "off", label: "Off" },
  { value: "candidate", label: "With a candidate" },
] as const;

export const pageSizes = [50, 100, 250] as const;

export interface ListQuery {
  readonly search: string;
  readonly state: string;
  readonly algorithm: string;
  readonly attribute: string;
  readonly tag: string;
  /** "" for document order. */
  readonly sort: SortName | "";
  readonly isDescending: boolean;
  readonly page: number;
  readonly perPage: number;
}

/** The URL is untrusted: unknown values become defaults. */
export function listQuery(search: string): ListQuery {
  const params = new URLSearchParams(search);
  const text = (name: string): string => params.get(name) ?? "";
  const [, minus = "", name = ""] = /^(-?)(\w+)$/.exec(text("sort")) ?? [];
  const page = Number(text("page"));
  const perPage = Number(text("per"));
  return {
    search: text("q"),
    state: text("state"),
    algorithm: text("algorithm"),
    attribute: text("attribute"),
    tag: text("tag"),
    sort: sortNames.find((one) => one === name) ?? "",
    isDescending: minus === "-",
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
    perPage: pageSizes.find((one) => one === perPage) ?? 100,
  };
}

export function attributesIn({ key, match = {} }: Rule): string[] {
  return [...key, ...Object.keys(match)];
}

export function filterRules(rules: readonly Rule[], query: ListQuery): readonly Rule[] {
  const { state, algorithm, attribute, tag } = query;
  const hasWords = matcher(query.search);
  return rules.filter(
    (rule) =>
      (state === "" || (state === "candidate" ? rule.candidate !== undefined : (rule.mode ?? "enforce") === state)) &&
      (algorithm === "" || rule.algorithm === algorithm) &&
      (attribute === "" || attributesIn(rule).includes(attribute)) &&
      (tag === "" || rule.tags?.includes(tag) === true) &&
      hasWords(rule),
  );
}

type StatsOf = ReadonlyMap<string, RuleStats>;

const values: Readonly<Record<SortName, (rule: Rule, stats: RuleStats | undefined) => number | string>> = {
  rule: ({ id }) => id,
  applies: (rule) => `${JSON.stringify(rule.match ?? {})} ${rule.key.join()}`,
  limit: ({ limit }) => (typeof limit === "number" ? limit : -1),
  traffic: (_, stats) => (stats === undefined ? -1 : stats.allowed + stats.refused),
  refused: (_, stats) => refusedShare(stats),
};

/** Includes refusals in shadow mode, which the list shows in the same column. */
export function refusedShare(stats: RuleStats | undefined): number {
  if (stats === undefined) return -1;
  const refused = stats.refused + stats.shadowRefused;
  return refused === 0 ? 0 : refused / (stats.allowed + refused);
}

/** Stable: equal rules keep document order. */
export function sortRules(rules: readonly Rule[], query: ListQuery, stats: StatsOf): readonly Rule[] {
  const { sort, isDescending } = query;
  if (sort === "") return rules;
  const sign = isDescending ? -1 : 1;
  return rules
    .map((rule) => ({ rule, value: values[sort](rule, stats.get(rule.id)) }))
    .sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : 0))
    .map(({ rule }) => rule);
}
