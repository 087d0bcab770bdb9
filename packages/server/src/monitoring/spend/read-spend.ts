/**
 * `GET /admin/v1/spend`: units by rule, estimates compared with settlements, and usage by model.
 * In: the rules in force, a window of the history, the store's learned estimates. Out: the view. Pure except for `readSpend`.
 */
import type { Limiter, Rule } from "sluice";
import { seriesOfRule } from "../history/history.js";
import type { Counts } from "../history/packed-counts.js";
import { type ReadWindow, readWindow, type StatsSources, sumOf } from "../read-window.js";
import type { EstimateView, LearnedView, ModelPrice, ModelView, SpendRuleView, SpendView } from "../views/spend.js";
import type { AskedTime, Series, StatsSpan } from "../views/time.js";
import { modelOfSeries } from "./model-spend.js";

const MOST_RULES = 100;

type SpendQuery = AskedTime & {
  readonly rule?: string | undefined;
  readonly prices?: readonly ModelPrice[] | undefined;
};

export async function readSpend(
  sources: StatsSources,
  limiter: Pick<Limiter, "learnedCosts">,
  { rule, prices, ...time }: SpendQuery,
): Promise<SpendView> {
  const rules = sources.rules().filter(({ id }) => rule === undefined || id === rule);
  const [window, learned] = await Promise.all([
    readWindow(sources, time),
    // Unknown while the store is down.
    rule === undefined ? undefined : limiter.learnedCosts(rule).catch(() => undefined),
  ]);
  return spendView(rules, window, { span: time.window, learned, prices });
}

export function spendView(
  rules: readonly Rule[],
  window: Pick<ReadWindow, "atMs" | "scope" | "stepMs" | "covered" | "series">,
  more: {
    span: StatsSpan;
    learned: readonly LearnedView[] | undefined;
    prices: readonly ModelPrice[] | undefined;
  },
): SpendView {
  const { atMs, scope, stepMs, covered, series } = window;
  const { span, learned, prices } = more;
  const spending = rules.filter(({ unit, estimate, mode }) => mode !== "off" && (unit ?? estimate) !== undefined);
  return {
    atMs,
    window: span,
    scope,
    stepMs,
    steps: covered,
    rules: spending.slice(0, MOST_RULES).map((rule) => ruleView(rule, window, learned)),
    models: modelViews(series, prices !== undefined),
    ...(prices !== undefined && { prices }),
  };
}

type Steps = Pick<ReadWindow, "covered" | "series">;

function ruleView(rule: Rule, window: Steps, learned: readonly LearnedView[] | undefined): SpendRuleView {
  const { id, mode, unit, estimate } = rule;
  const points = window.series.get(seriesOfRule(id)) ?? [];
  const sum = sumOf(points);
  const by = (name: "spent" | "held" | "settled" | "overrun"): Series => {
    const byStart = new Map(points.map(({ atMs, counts }) => [atMs, counts]));
    return window.covered.map(({ atMs, coveredMs }) => (coveredMs === 0 ? null : (byStart.get(atMs)?.[name] ?? 0)));
  };
  return {
    rule: id,
    mode: mode === "shadow" ? "shadow" : "enforce",
    unit: unit ?? "requests",
    ...(unit !== undefined && { spent: sum.spent ?? 0, spentBy: by("spent") }),
    ...(estimate !== undefined && { estimate: estimateView(sum, by, learned) }),
  };
}

function estimateView(
  { held = 0, settled = 0, overrun = 0 }: Counts,
  by: (name: "held" | "settled" | "overrun") => Series,
  learned: readonly LearnedView[] | undefined,
): EstimateView {
  const series = { heldBy: by("held"), settledBy: by("settled"), overrunBy: by("overrun") };
  return { held, settled, overrun, ...series, ...(learned !== undefined && { learned }) };
}

function modelViews(series: ReadWindow["series"], isPriced: boolean): ModelView[] {
  const models: ModelView[] = [];
  for (const [name, points] of series) {
    const model = modelOfSeries(name);
    if (model === undefined) continue;
    const { calls = 0, promptTokens = 0, completionTokens = 0, cachedTokens = 0, microdollars = 0 } = sumOf(points);
    models.push({
      model,
      calls,
      promptTokens,
      completionTokens,
      cachedTokens,
      ...(isPriced && { microdollars }),
    });
  }
  const tokens = (one: ModelView): number => one.promptTokens + one.completionTokens;
  return models.sort((a, b) => (b.microdollars ?? 0) - (a.microdollars ?? 0) || tokens(b) - tokens(a));
}
