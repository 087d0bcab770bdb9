/**
 * `GET /admin/v1/load`: the rules that shed load, adapt their limits or make requests wait, with their series and current state.
 * In: the rules in force, a window of the history, the instances' current readings. Out: the view. Deleted rules are not shown.
 */
import type { Rule } from "sluice";
import { isCounting, sheddingClasses } from "sluice/internal";
import { seriesOfRule } from "../history/history.js";
import type { Counts } from "../history/packed-counts.js";
import { type ReadWindow, readWindow, type StatsSources, sumOf } from "../read-window.js";
import type {
  AdaptiveView,
  LoadView,
  SheddingClassView,
  SheddingView,
  WaitingKeyView,
  WaitingView,
} from "../views/load.js";
import type { AskedTime, Series, StatsSpan } from "../views/time.js";
import { classSeries, MOST_LOAD_RULES, meanOf, meanShare } from "./load-readings.js";
import type { LoadNow, SharedLoad } from "./shared-load.js";

const MOST_MOVES = 50;
const MOST_KEYS = 100;

type CountingRule = Extract<Rule, { limit: number }>;
type SheddingRule = Extract<Rule, { algorithm: "load-shedding" }>;
type LoadSignal = "inflight" | "event-loop" | "reported";

export async function readLoad(
  sources: StatsSources,
  shared: Pick<SharedLoad, "read" | "own">,
  asked: AskedTime & { rule?: string | undefined },
): Promise<LoadView> {
  const [window, now] = await Promise.all([readWindow(sources, asked), shared.read().catch(() => undefined)]);
  const rules = sources
    .rules()
    .filter(({ id, mode }) => mode !== "off" && (asked.rule === undefined || id === asked.rule));
  // If the other instances are unreachable, current figures are this instance's only, even if the history still answers.
  const scope = now === undefined ? "instance" : window.scope;
  return loadView(rules, { ...window, scope }, now ?? shared.own(), asked.window);
}

/** Pure. */
export function loadView(
  rules: readonly Rule[],
  window: Pick<ReadWindow, "atMs" | "scope" | "stepMs" | "present" | "covered" | "series">,
  now: LoadNow,
  span: StatsSpan,
): LoadView {
  const { atMs, scope, stepMs, present, covered } = window;
  const figures = new WindowFigures(window);
  const shedding = rules.filter((rule): rule is SheddingRule => rule.algorithm === "load-shedding");
  const counting = rules.filter((rule): rule is CountingRule => isCounting(rule));
  const keys = waitingKeys(now).filter(({ rule }) => rules.some(({ id }) => id === rule));
  return {
    atMs,
    window: span,
    scope,
    stepMs,
    instances: present.length,
    steps: covered,
    shedding: shedding.slice(0, MOST_LOAD_RULES).map((rule) => sheddingView(rule, figures, now)),
    adaptive: counting
      .filter(({ adapt }) => adapt !== undefined)
      .slice(0, MOST_LOAD_RULES)
      .map((rule) => adaptiveView(rule, figures, now)),
    waiting: counting.flatMap((rule) => waitingView(rule, figures, now)).slice(0, MOST_LOAD_RULES),
    waitingKeys: keys.slice(0, MOST_KEYS),
    moreKeys: keys.length > MOST_KEYS || now.instances.some(({ moreKeys }) => moreKeys),
  };
}

/** The counts of a window, by step. */
class WindowFigures {
  readonly #window: Pick<ReadWindow, "covered" | "series">;

  constructor(window: Pick<ReadWindow, "covered" | "series">) {
    this.#window = window;
  }

  sum(series: string): Counts {
    return sumOf(this.#window.series.get(series) ?? []);
  }

  /** Null for a step without coverage. */
  by(series: string, figureOf: (counts: Counts, coveredMs: number) => number | null): Series {
    const byStart = new Map((this.#window.series.get(series) ?? []).map(({ atMs, counts }) => [atMs, counts]));
    return this.#window.covered.map(({ atMs, coveredMs }) =>
      coveredMs === 0 ? null : figureOf(byStart.get(atMs) ?? {}, coveredMs),
    );
  }
}

function sheddingView(rule: SheddingRule, figures: WindowFigures, now: LoadNow): SheddingView {
  const series = seriesOfRule(rule.id);
  const signals = [rule.signal].flat();
  const seen = now.instances.flatMap(({ shedding }) => shedding.filter((one) => one.rule === rule.id));
  const utilisation = Object.fromEntries(
    signals.flatMap((signal) => {
      const values = seen.flatMap(({ signals: seenSignals }) => seenSignals[signal] ?? []);
      return values.length === 0 ? [] : [[signal, Math.max(...values)]];
    }),
  );
  const hasPlaces = signals.includes("inflight");
  const sumOfSeen = (of: "places" | "inFlight") => seen.reduce((sum, one) => sum + (one[of] ?? 0), 0);
  return {
    rule: rule.id,
    mode: rule.mode === "shadow" ? "shadow" : "enforce",
    signals,
    isEstimated: rule.limit === "auto",
    ...(seen.length > 0 && {
      now: { utilisation, ...(hasPlaces && { places: sumOfSeen("places"), inFlight: sumOfSeen("inFlight") }) },
    }),
    utilisation: Object.fromEntries(signals.map((signal) => [signal, figures.by(series, shareOf[signal])])),
    ...(hasPlaces && {
      places: figures.by(series, ({ places, placesSeen }) => meanOf(places, placesSeen)),
      inFlight: figures.by(series, ({ inFlight, placesSeen }) => meanOf(inFlight, placesSeen)),
    }),
    classes: Object.entries(sheddingClasses(rule)).map(([name, threshold]) =>
      classView({ name, threshold }, classSeries(rule.id, name), figures),
    ),
  };
}

const shareOf: Readonly<Record<LoadSignal, (counts: Counts) => number | null>> = {
  inflight: ({ inFlightUse, inFlightUses }) => meanShare(inFlightUse, inFlightUses),
  "event-loop": ({ loopUse, loopUses }) => meanShare(loopUse, loopUses),
  reported: ({ reportedUse, reportedUses }) => meanShare(reportedUse, reportedUses),
};

function classView(
  one: Pick<SheddingClassView, "name" | "threshold">,
  series: string,
  figures: WindowFigures,
): SheddingClassView {
  const { allowed = 0, refused = 0 } = figures.sum(series);
  return {
    ...one,
    passed: allowed,
    shed: refused,
    passedBy: figures.by(series, (counts) => counts.allowed ?? 0),
    shedBy: figures.by(series, (counts) => counts.refused ?? 0),
  };
}

function adaptiveView(rule: CountingRule, figures: WindowFigures, now: LoadNow): AdaptiveView {
  const { signal, min, max, target } = rule.adapt!;
  const series = seriesOfRule(rule.id);
  const seen = now.instances.flatMap(({ instance, adaptive }) =>
    adaptive.filter((one) => one.rule === rule.id).map((one) => ({ ...one, instance })),
  );
  // The leader's number is authoritative; the others read it with a delay.
  const best = seen.find(({ leads }) => leads) ?? seen[0];
  return {
    rule: rule.id,
    mode: rule.mode === "shadow" ? "shadow" : "enforce",
    ...(rule.unit !== undefined && { unit: rule.unit }),
    signals: [signal].flat(),
    configured: rule.limit,
    min,
    max,
    target,
    ...(best !== undefined && {
      now: {
        limit: best.limit,
        ...(best.utilisation !== undefined && { utilisation: best.utilisation }),
        ...(best.leads && { leader: best.instance }),
      },
    }),
    limit: figures.by(series, ({ limit, limits }) => meanOf(limit, limits)),
    utilisation: figures.by(series, ({ limitUse, limitUses }) => meanShare(limitUse, limitUses)),
    moves: now.moves
      .filter((move) => move.rule === rule.id)
      .sort((a, b) => b.atMs - a.atMs)
      .slice(0, MOST_MOVES)
      .map(({ rule: _, ...move }) => move),
  };
}

/** Empty if no request can wait under the rule. */
function waitingView(rule: CountingRule, figures: WindowFigures, now: LoadNow): WaitingView[] {
  const numbers = [rule, ...(rule.overrides ?? []), ...(rule.variants ?? [])];
  const maxWait = numbers.flatMap((one) => ("maxWait" in one && one.maxWait !== undefined ? [one.maxWait] : []))[0];
  if (maxWait === undefined) return [];
  const series = seriesOfRule(rule.id);
  const { turns = 0, waitMs = 0 } = figures.sum(series);
  const waiting = now.instances.flatMap((one) => one.waiting.filter(([id]) => id === rule.id).map(([, n]) => n));
  return [
    {
      rule: rule.id,
      mode: rule.mode === "shadow" ? "shadow" : "enforce",
      maxWait: String(maxWait),
      now: waiting.reduce((sum, n) => sum + n, 0),
      turns,
      ...(turns > 0 && { meanWaitMs: waitMs / turns }),
      // Each instance samples once a second, so the sum of a second's readings is the fleet's total.
      waitingBy: figures.by(series, (counts, coveredMs) => ((counts.waiting ?? 0) * 1_000) / coveredMs),
      turnsBy: figures.by(series, (counts) => counts.turns ?? 0),
      waitMsBy: figures.by(series, (counts) => meanOf(counts.waitMs, counts.turns)),
    },
  ];
}

/** A key's requests may wait on several instances. */
function waitingKeys({ instances }: LoadNow): WaitingKeyView[] {
  const byKey = new Map<string, WaitingKeyView>();
  for (const key of instances.flatMap(({ keys }) => keys)) {
    const name = `${key.rule} ${JSON.stringify(key.attributes ?? null)}`;
    const other = byKey.get(name);
    byKey.set(name, {
      ...key,
      waiting: key.waiting + (other?.waiting ?? 0),
      longestMs: Math.max(key.longestMs, other?.longestMs ?? 0),
      lastTurnMs: Math.max(key.lastTurnMs, other?.lastTurnMs ?? 0),
    });
  }
  return [...byKey.values()].sort((a, b) => b.waiting - a.waiting || b.longestMs - a.longestMs);
}
