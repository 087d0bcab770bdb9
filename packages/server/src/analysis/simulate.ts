/**
 * A draft of rules against recorded traffic: each request is decided by the draft, by the rules in force beside it if
 * they are given, and by the draft once more where refused clients come back. In: batches of requests. Out: figures.
 */
import type { Attributes, Decision, Rule } from "sluice";
import { SluiceError } from "sluice";
import type { MaybePromise } from "sluice/internal";
import { countOne, FrequentItems, type Item } from "../monitoring/top-keys/frequent-items.js";
import { ComeBack, type ComeBackFigures } from "./come-back.js";
import type { LogRequest } from "./log/log-request.js";
import { type Arrival, Replay, type Replayed } from "./replay.js";
import { isCharged, type KeyFigures, RuleCount, type RuleFigures, spellKey, windowOf } from "./rule-figures.js";
import { type Series, TimeSeries } from "./time-series.js";

interface SimulationOptions {
  readonly rules: readonly Rule[];
  /** The rules in force. */
  readonly against?: readonly Rule[] | undefined;
  /** Whether refused clients are also tried as coming back. */
  readonly comeBack: boolean;
  /** Of the counters of each rule set; beyond, idle ones give way, which the figures say. */
  readonly maxBytes?: number | undefined;
  /** Throws or rejects with `invalid-request` for a request that the service itself would refuse as malformed. */
  readonly attributesOf: (request: LogRequest) => MaybePromise<Attributes>;
}

interface Comparison {
  /** Requests that the rules in force refuse. */
  readonly refused: number;
  readonly newlyRefused: number;
  readonly newlyAdmitted: number;
  /** How many keys, and the first of them. */
  readonly keysNewlyRefused: number;
  readonly keysNewlyAdmitted: number;
  /** Whether both counts are exact; beyond twenty thousand keys they are lower bounds. */
  readonly keysExact: boolean;
  readonly newlyRefusedKeys: readonly KeyFigures[];
  readonly newlyAdmittedKeys: readonly KeyFigures[];
}

export interface Simulation {
  readonly total: number;
  readonly refused: number;
  /** Of the total. */
  readonly share: number;
  /** Requests that no rule applied to. */
  readonly unmatched: number;
  /** Requests that the service refuses as malformed, whatever the rules say; not in the total. */
  readonly malformed: number;
  readonly from?: string;
  readonly to?: string;
  readonly rules: readonly RuleFigures[];
  readonly against?: Comparison;
  readonly comeBack?: ComeBackFigures;
  /** Requests and refusals a step; with `against`, the refusals of the rules in force too. */
  readonly series: Series;
  /** Counters that gave way because memory was short: then figures are lower bounds. */
  readonly evicted: number;
}

/** Exact up to twice as many. */
const KEEP_KEYS = 10_000;
const TOP_KEYS = 10;

export class Simulator {
  readonly #options: SimulationOptions;
  readonly #draft: Replay;
  readonly #live: Replay | undefined;
  readonly #comeBack: ComeBack | undefined;
  /** By mode, then by rule. */
  readonly #counts = new Map<string, Map<string, RuleCount>>();
  readonly #series: TimeSeries;
  readonly #newlyRefused = new FrequentItems<Item>(KEEP_KEYS);
  readonly #newlyAdmitted = new FrequentItems<Item>(KEEP_KEYS);
  #figures = { total: 0, refused: 0, unmatched: 0, malformed: 0, liveRefused: 0, newlyRefused: 0, newlyAdmitted: 0 };
  #fromMs: number | undefined;
  #toMs = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#draft = new Replay(options.rules, options.maxBytes);
    this.#live = options.against === undefined ? undefined : new Replay(options.against, options.maxBytes);
    this.#series = new TimeSeries(options.against === undefined ? 2 : 3);
    this.#comeBack = options.comeBack ? new ComeBack(options.rules) : undefined;
    // A rule that nothing met is in the report too.
    for (const rule of this.#draft.rules) {
      if (rule.mode !== "off") this.#count(rule.id, rule.mode ?? "enforce");
    }
  }

  /** Requests in the order of their time. Waits only where it must: a million lines make a million promises for each await. */
  async addAll(batch: Iterable<LogRequest>): Promise<void> {
    for (const request of batch) {
      try {
        const made = request.attributes ?? this.#options.attributesOf(request);
        const waits = this.#add(request, made instanceof Promise ? await made : made);
        if (waits !== undefined) await waits;
      } catch (error) {
        // The service would refuse it as malformed: a target, a cost that is no number, a value too complex to match.
        if (!(error instanceof SluiceError) || !["invalid-request", "too-complex"].includes(error.code)) throw error;
        this.#figures.malformed++;
      }
    }
  }

  #add({ atMs, durationMs, recorded }: LogRequest, attributes: Attributes): Promise<void> | undefined {
    if (recorded !== undefined && !("checks" in recorded)) return this.#happened(recorded);
    const arrival: Arrival =
      recorded === undefined
        ? { atMs, durationMs, attributes }
        : {
            atMs,
            durationMs,
            attributes,
            cost: recorded.parts === undefined ? recorded.cost : recorded.parts[0]?.cost,
            entry: recorded.entry,
            isCharge: recorded.charge === true || recorded.parts?.[0]?.charge === true,
          };
    const draft = this.#draft.decide(arrival);
    const live = this.#live?.decide(arrival);
    if (draft instanceof Promise || live instanceof Promise || this.#comeBack !== undefined)
      return this.#addLater(arrival, draft, live);
    this.#judge(draft, live);
    return undefined;
  }

  async #addLater(
    arrival: Arrival,
    draft: Replayed | Promise<Replayed>,
    live: Replayed | Promise<Replayed> | undefined,
  ): Promise<void> {
    const [byDraft, byLive] = await Promise.all([draft, live]);
    this.#judge(byDraft, byLive);
    // Which of several tries a recorded release belongs to is not known: places are given back at once.
    await this.#comeBack?.add({ ...arrival, entry: undefined });
  }

  #judge(draft: Replayed, live: Replayed | undefined): void {
    this.#tally(draft);
    if (live !== undefined) this.#compare(draft, live);
  }

  async #happened(recorded: Parameters<Replay["happened"]>[0]): Promise<void> {
    await this.#draft.happened(recorded);
    await this.#live?.happened(recorded);
  }

  #tally({ decision, asked }: Replayed): void {
    const figures = this.#figures;
    const { nowMs } = this.#draft;
    this.#fromMs ??= nowMs;
    this.#toMs = nowMs;
    figures.total++;
    if (decision.checks.length === 0) figures.unmatched++;
    const row = this.#series.row(nowMs);
    row[0]!++;
    if (!decision.allowed) {
      figures.refused++;
      row[1]!++;
    }
    for (let i = 0; i < decision.checks.length; i++) {
      const { rule, mode, allowed } = decision.checks[i]!;
      const charged = isCharged(decision, mode, allowed);
      this.#count(rule, mode).add(asked[i]!.key, { allowed, isCharged: charged, cost: asked[i]!.cost, atMs: nowMs });
    }
  }

  #count(id: string, mode: string): RuleCount {
    let ofMode = this.#counts.get(mode);
    if (ofMode === undefined) {
      ofMode = new Map();
      this.#counts.set(mode, ofMode);
    }
    let count = ofMode.get(id);
    if (count === undefined) {
      const rule = this.#draft.rules.find((one) => one.id === id)!;
      const limit = (mode === "candidate" ? rule.candidate?.limit : undefined) ?? Number(rule.limit);
      count = new RuleCount({ rule: id, mode, limit, windowMs: windowOf(rule) });
      ofMode.set(id, count);
    }
    return count;
  }

  #compare(draft: Replayed, live: Replayed): void {
    const figures = this.#figures;
    if (!live.decision.allowed) {
      figures.liveRefused++;
      this.#series.row(this.#draft.nowMs)[2]!++;
    }
    if (draft.decision.allowed === live.decision.allowed) return;
    if (live.decision.allowed) {
      figures.newlyRefused++;
      countOne(this.#newlyRefused, refuserOf(draft));
    } else {
      figures.newlyAdmitted++;
      countOne(this.#newlyAdmitted, refuserOf(live));
    }
  }

  /** In the order of the document; a rule's candidate after it. */
  #ruleFigures(): RuleFigures[] {
    const modes = ["enforce", "shadow", "candidate"];
    return this.#draft.rules.flatMap(({ id }) =>
      modes.flatMap((mode) => this.#counts.get(mode)?.get(id)?.read() ?? []),
    );
  }

  async end(): Promise<Simulation> {
    const { total, refused, unmatched, malformed, liveRefused, newlyRefused, newlyAdmitted } = this.#figures;
    const comeBack = await this.#comeBack?.end();
    const evicted = this.#draft.evicted + (this.#live?.evicted ?? 0);
    await this.#draft.close();
    await this.#live?.close();
    return {
      total,
      refused,
      share: total === 0 ? 0 : refused / total,
      unmatched,
      malformed,
      ...(this.#fromMs !== undefined && {
        from: new Date(this.#fromMs).toISOString(),
        to: new Date(this.#toMs).toISOString(),
      }),
      rules: this.#ruleFigures(),
      ...(this.#live !== undefined && {
        against: {
          refused: liveRefused,
          newlyRefused,
          newlyAdmitted,
          keysNewlyRefused: this.#newlyRefused.size,
          keysNewlyAdmitted: this.#newlyAdmitted.size,
          keysExact: this.#newlyRefused.offset === 0 && this.#newlyAdmitted.offset === 0,
          newlyRefusedKeys: topOf(this.#newlyRefused),
          newlyAdmittedKeys: topOf(this.#newlyAdmitted),
        },
      }),
      ...(comeBack !== undefined && { comeBack }),
      series: this.#series.read(),
      evicted,
    };
  }
}

/** The rule and key that refused, as a text. */
function refuserOf({ decision, asked }: Replayed): string {
  const at = decision.checks.findIndex((check) => isRefuser(check, decision));
  return `${decision.checks[at]!.rule}: ${spellKey(asked[at]!.key)}`;
}

function isRefuser({ rule, mode, allowed }: Decision["checks"][number], decision: Decision): boolean {
  return mode === "enforce" && !allowed && rule === decision.rule;
}

function topOf(items: FrequentItems<Item>): KeyFigures[] {
  return items.top(TOP_KEYS).items.map(([key, { count }]) => ({ key, refused: count }));
}
