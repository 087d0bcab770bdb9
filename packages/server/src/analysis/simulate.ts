/**
 * Simulates a draft of rules on recorded traffic: each request is decided by the draft, optionally by the rules in force, and optionally by
 * the draft once more with retries of refused clients. In: batches of requests. Out: figures.
 */
import type { Attributes, Decision, Rule } from "sluice";
import { SluiceError } from "sluice";
import type { MaybePromise } from "sluice/internal";
import { ChangedDecisions, type Comparison } from "./changed-decisions.js";
import { ComeBack, type ComeBackFigures } from "./come-back.js";
import type { LogRequest } from "./log/log-request.js";
import { PlainReplay } from "./plain-replay.js";
import { type Arrival, MOST_BYTES, Replay, type Replayed } from "./replay.js";
import { isCharged, type KeyCount, RuleCount, type RuleFigures, spellKey, windowOf } from "./rule-figures.js";
import { type Series, TimeSeries } from "./time-series.js";
import { touchWindow } from "./worst-window.js";

interface SimulationOptions {
  readonly rules: readonly Rule[];
  /** The rules in force. */
  readonly against?: readonly Rule[] | undefined;
  /** Whether to simulate retries of refused clients as well. */
  readonly comeBack: boolean;
  /**
   * Called with the first request: whether there may be recorded decisions, with their costs, refunds and resets. Pure access logs take a
   * fast path (`plain-replay.ts`). Absent: there may be.
   */
  readonly mayBeRecorded?: (() => boolean) | undefined;
  /** Bound on the counters of each rule set; beyond, idle ones are evicted, which the figures mention. */
  readonly maxBytes?: number | undefined;
  /** Throws or rejects with `invalid-request` for a request that the service would refuse as malformed. */
  readonly attributesOf: (request: LogRequest) => MaybePromise<Attributes>;
}

export interface Simulation {
  readonly total: number;
  readonly refused: number;
  /** Of the total. */
  readonly share: number;
  /** Requests that no rule matched. */
  readonly unmatched: number;
  /** Requests that the service refuses as malformed, whatever the rules; not in the total. */
  readonly malformed: number;
  readonly from?: string;
  readonly to?: string;
  readonly rules: readonly RuleFigures[];
  readonly against?: Comparison;
  readonly comeBack?: ComeBackFigures;
  /** Requests and refusals per step; with `against`, also the refusals by the rules in force. */
  readonly series: Series;
  /** Counters evicted for lack of memory: figures are then lower bounds. */
  readonly evicted: number;
}

/** Requests whose counters are prefetched together. A CPU has about ten reads in flight, and its fastest cache holds the results. */
const GROUP = 32;

const noNotes = { begin: () => undefined, isOver: () => true, touch: () => 0 };

export class Simulator {
  readonly #options: SimulationOptions;
  readonly #draft: Replay;
  readonly #live: Replay | undefined;
  readonly #comeBack: ComeBack | undefined;
  /** By mode, then by rule. */
  readonly #counts = new Map<string, Map<string, RuleCount>>();
  readonly #series: TimeSeries;
  readonly #changes = new ChangedDecisions();
  #figures = { total: 0, refused: 0, unmatched: 0, malformed: 0 };
  #fromMs: number | undefined;
  #toMs = 0;
  /** The fast path; undefined before the first request, and if it does not apply. */
  #plain: { readonly draft: PlainReplay<KeyCount>; readonly live: PlainReplay<undefined> | undefined } | undefined;
  #isBegun = false;
  /** Attributes of the requests in the current group; undefined for malformed ones. */
  readonly #group: (Attributes | undefined)[] = [];

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#draft = new Replay(options.rules, options.maxBytes);
    this.#live = options.against === undefined ? undefined : new Replay(options.against, options.maxBytes);
    this.#series = new TimeSeries(options.against === undefined ? 2 : 3);
    this.#comeBack = options.comeBack ? new ComeBack(options.rules) : undefined;
    // Include rules that match nothing in the report.
    for (const rule of this.#draft.rules) {
      if (rule.mode !== "off") this.#count(rule.id, rule.mode ?? "enforce");
    }
  }

  /** Requests must be in order of time. Awaits only if necessary: each await would create a promise per line. */
  async addAll(batch: readonly LogRequest[]): Promise<void> {
    if (!this.#isBegun) this.#begin();
    for (let from = 0; from < batch.length; from += GROUP) {
      const end = Math.min(batch.length, from + GROUP);
      const isPlain = this.#plain !== undefined;
      for (let i = from; i < end; i++) {
        this.#group[i - from] = undefined;
        try {
          const made = batch[i]!.attributes ?? this.#options.attributesOf(batch[i]!);
          const attributes = made instanceof Promise ? await made : made;
          this.#group[i - from] = attributes;
          const waits = isPlain ? undefined : this.#add(batch[i]!, attributes);
          if (waits !== undefined) await waits;
        } catch (error) {
          this.#countMalformed(error);
        }
      }
      if (isPlain) this.#addGroup(batch, from, end);
    }
  }

  /** The fast path. Prefetches everything that the group needs before deciding its first request. */
  #addGroup(batch: readonly LogRequest[], from: number, end: number): void {
    const { draft, live } = this.#plain!;
    const group = this.#group;
    draft.expect(group, end - from);
    live?.expect(group, end - from);
    for (let i = from; i < end; i++) {
      const attributes = group[i - from];
      if (attributes === undefined) continue;
      try {
        this.#addPlain(batch[i]!.atMs, attributes);
      } catch (error) {
        this.#countMalformed(error);
      }
    }
  }

  /** The service would refuse it as malformed: a bad target, a cost that is no number, a value too complex to match. */
  #countMalformed(error: unknown): void {
    if (!(error instanceof SluiceError) || !["invalid-request", "too-complex"].includes(error.code)) throw error;
    this.#figures.malformed++;
  }

  #begin(): void {
    this.#isBegun = true;
    const { maxBytes = MOST_BYTES, mayBeRecorded } = this.#options;
    if (this.#comeBack !== undefined || (mayBeRecorded?.() ?? true)) return;
    const draft = PlainReplay.of<KeyCount>(
      this.#draft.rules,
      {
        begin: ({ key, plan }) => this.#count(plan.rule, plan.mode).begin(key),
        isOver: (note, nowMs) => note.count.isOver(note, nowMs),
        touch: touchWindow,
      },
      maxBytes,
    );
    const live = this.#live && PlainReplay.of(this.#live.rules, noNotes, maxBytes);
    if (draft !== undefined && (live !== undefined) === (this.#live !== undefined)) this.#plain = { draft, live };
  }

  #addPlain(atMs: number, attributes: Attributes): void {
    const { draft, live } = this.#plain!;
    draft.decide(attributes, atMs);
    live?.decide(attributes, atMs);
    const { nowMs, count, records, verdicts } = draft;
    this.#tallyRequest(nowMs, draft.allowed, count > 0);
    for (let i = 0; i < count; i++) {
      const { note, plan, cost } = records[i]!;
      const { allowed } = verdicts[i]!;
      const charged = isCharged(draft, plan.mode, allowed);
      note.count.addTo(note, { allowed, isCharged: charged, cost, atMs: nowMs });
    }
    if (live === undefined) return;
    if (!live.allowed) this.#tallyLiveRefusal();
    if (draft.allowed === live.allowed) return;
    if (live.allowed) this.#changes.newlyRefused(plainRefuserOf(draft));
    else this.#changes.newlyAdmitted(plainRefuserOf(live));
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
    // With retries it is unknown which attempt a recorded release belongs to, so places are released by duration.
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
    const { nowMs } = this.#draft;
    this.#tallyRequest(nowMs, decision.allowed, decision.checks.length > 0);
    for (let i = 0; i < decision.checks.length; i++) {
      const { rule, mode, allowed } = decision.checks[i]!;
      const charged = isCharged(decision, mode, allowed);
      this.#count(rule, mode).add(asked[i]!.key, { allowed, isCharged: charged, cost: asked[i]!.cost, atMs: nowMs });
    }
  }

  #tallyRequest(nowMs: number, allowed: boolean, isMatched: boolean): void {
    const figures = this.#figures;
    this.#fromMs ??= nowMs;
    this.#toMs = nowMs;
    figures.total++;
    if (!isMatched) figures.unmatched++;
    const row = this.#series.row(nowMs);
    row[0]!++;
    if (allowed) return;
    figures.refused++;
    row[1]!++;
  }

  #tallyLiveRefusal(): void {
    this.#changes.refused++;
    this.#series.row(this.#toMs)[2]!++;
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
    if (!live.decision.allowed) this.#tallyLiveRefusal();
    if (draft.decision.allowed === live.decision.allowed) return;
    if (live.decision.allowed) this.#changes.newlyRefused(refuserOf(draft));
    else this.#changes.newlyAdmitted(refuserOf(live));
  }

  /** In document order; a rule's candidate follows it. */
  #ruleFigures(): RuleFigures[] {
    const modes = ["enforce", "shadow", "candidate"];
    return this.#draft.rules.flatMap(({ id }) =>
      modes.flatMap((mode) => this.#counts.get(mode)?.get(id)?.read() ?? []),
    );
  }

  async end(): Promise<Simulation> {
    const { total, refused, unmatched, malformed } = this.#figures;
    const comeBack = await this.#comeBack?.end();
    const replays = this.#plain === undefined ? [this.#draft, this.#live] : [this.#plain.draft, this.#plain.live];
    const evicted = replays.reduce((sum, replay) => sum + (replay?.evicted ?? 0), 0);
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
      ...(this.#live !== undefined && { against: this.#changes.read() }),
      ...(comeBack !== undefined && { comeBack }),
      series: this.#series.read(),
      evicted,
    };
  }
}

/** The refusing rule and key, as text. */
function refuserOf({ decision, asked }: Replayed): string {
  const at = decision.checks.findIndex((check) => isRefuser(check, decision));
  return `${decision.checks[at]!.rule}: ${spellKey(asked[at]!.key)}`;
}

function isRefuser({ rule, mode, allowed }: Decision["checks"][number], decision: Decision): boolean {
  return mode === "enforce" && !allowed && rule === decision.rule;
}

function plainRefuserOf({ records, refuser }: Pick<PlainReplay<unknown>, "records" | "refuser">): string {
  const { plan, key } = records[refuser]!;
  return `${plan.rule}: ${spellKey(key)}`;
}
