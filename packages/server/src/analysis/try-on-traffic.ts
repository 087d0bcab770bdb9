/**
 * Compares a draft of one rule with the rules in force on recorded traffic: who would newly be refused, before it is saved. Also suggests
 * limits for a rule from its keys' real traffic. Runs on a worker thread (`traffic-worker.ts`).
 */
import { type Rule, ruleBook, SluiceError, validateRules } from "sluice";
import { HashedValues } from "../recording/hash-values.js";
import { RecordedTraffic, type TrafficOptions } from "./recorded-traffic.js";
import { RollingMaxima } from "./rolling-maxima.js";
import { type KeyFigures, type RuleFigures, windowOf } from "./rule-figures.js";
import { Simulator } from "./simulate.js";
import { type SuggestedLimit, suggestionOf } from "./suggest.js";
import type { Series } from "./time-series.js";

interface Task extends TrafficOptions {
  /** Literal values in rules are hashed like the recording's values. */
  readonly hash: { readonly names: readonly string[]; readonly key: string };
}

export interface TryTask extends Task {
  /** The rules in force, `{rules: […]}` as JSON. */
  readonly document: string;
  /** Replaces the rule with the same id, or is added. */
  readonly draft: unknown;
}

export interface SuggestTask extends Task {
  readonly rule: Rule;
  readonly headroom: number;
}

interface TrafficView {
  /** Requests. */
  readonly total: number;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** The bound that ended the reading; absent if all traffic was read. */
  readonly endedBy?: "lines" | "time" | undefined;
}

export interface TryView extends TrafficView {
  /** Requests refused by the rules in force, and with the draft. */
  readonly refusedBefore: number;
  readonly refusedAfter: number;
  readonly newlyRefused: number;
  readonly newlyAdmitted: number;
  /** Distinct keys of these requests. */
  readonly keysNewlyRefused: number;
  readonly keysNewlyAdmitted: number;
  /** Whether both key counts are exact rather than lower bounds. */
  readonly keysExact: boolean;
  /** The busiest of them. */
  readonly newlyRefusedKeys: readonly KeyFigures[];
  readonly newlyAdmittedKeys: readonly KeyFigures[];
  /** The draft itself, and its candidate if it has one. */
  readonly rules: readonly RuleFigures[];
  /** Rows: requests, refused after, refused before. */
  readonly series: Series;
}

export interface SuggestionsView extends TrafficView {
  readonly rule: string;
  readonly source: "recording" | "history";
  /** Number of keys seen; with history, only the busiest. */
  readonly keys: number;
  readonly p50: number;
  readonly max: number;
  readonly headroom: number;
  readonly limits: readonly SuggestedLimit[];
}

/** For the counters of two rule sets on a service's thread: a fraction of what a CLI command may use. */
const MOST_BYTES = 128 * 2 ** 20;
const UNMAPPED = (): never => {
  throw new SluiceError("invalid-request", "a line without attributes");
};

/** Throws `invalid-rules` for a draft with mistakes. */
export async function tryOnTraffic({ document, draft, hash, ...options }: TryTask): Promise<TryView> {
  const hashed = new HashedValues(hash.names, hash.key);
  const live = (JSON.parse(document) as { rules: Rule[] }).rules;
  const rule = validated(draft);
  const rules = live.some(({ id }) => id === rule.id)
    ? live.map((one) => (one.id === rule.id ? rule : one))
    : [...live, rule];
  const simulator = new Simulator({
    rules: rules.map((one) => hashed.rule(one)),
    against: live.map((one) => hashed.rule(one)),
    comeBack: false,
    attributesOf: UNMAPPED,
    maxBytes: MOST_BYTES,
  });
  const traffic = new RecordedTraffic(options);
  for await (const batch of traffic.requests()) await simulator.addAll(batch);
  const { total, refused, from, to, rules: figures, against, series } = await simulator.end();
  const { refused: refusedBefore, ...compared } = against!;
  return {
    total,
    from,
    to,
    endedBy: traffic.endedBy,
    refusedBefore,
    refusedAfter: refused,
    ...compared,
    rules: figures.filter((one) => one.rule === rule.id),
    series,
  };
}

function validated(draft: unknown): Rule {
  const outcome = validateRules({ rules: [draft] });
  if ("mistakes" in outcome)
    throw new SluiceError("invalid-rules", "the draft has mistakes", { mistakes: outcome.mistakes });
  return outcome.rules[0]!;
}

/** The maximum of each key in any of the rule's windows, whether or not the rule admitted it. */
export async function suggestOnTraffic({ rule, headroom, hash, ...options }: SuggestTask): Promise<SuggestionsView> {
  const windowMs = windowOf(rule);
  const {
    candidate: _,
    variants: __,
    ...live
  } = new HashedValues(hash.names, hash.key).rule(rule) as Rule & {
    candidate?: unknown;
    variants?: unknown;
  };
  const book = ruleBook([live as Rule]);
  const maxima = new RollingMaxima(windowMs ?? 1);
  const traffic = new RecordedTraffic(options);
  let total = 0;
  let [fromMs, toMs] = [Number.POSITIVE_INFINITY, 0];
  for await (const batch of traffic.requests()) {
    for (const { atMs, attributes, recorded } of batch) {
      if (recorded === undefined || !("checks" in recorded)) continue;
      total++;
      fromMs = Math.min(fromMs, atMs);
      toMs = Math.max(toMs, atMs);
      const [check] = checksOf(() => book.checks(attributes!, recorded.cost));
      if (check !== undefined && windowMs !== undefined) maxima.add(check.key, check.cost, toMs);
    }
  }
  const { keys, p50, max, limits } = suggestionOf("", maxima, headroom);
  return {
    rule: rule.id,
    source: "recording",
    total,
    ...(total > 0 && { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }),
    endedBy: traffic.endedBy,
    keys,
    p50,
    max,
    headroom,
    limits,
  };
}

/** Empty if the rule refuses the attributes as malformed. */
function checksOf<T>(read: () => readonly T[]): readonly T[] {
  try {
    return read();
  } catch (error) {
    if (error instanceof SluiceError) return [];
    throw error;
  }
}
