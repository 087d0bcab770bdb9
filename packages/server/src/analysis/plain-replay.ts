/**
 * The short way of a replay: requests of an access log under rules that only count. The same models decide as in `replay.ts`, without request,
 * reply and decision around them, and each counter is found once: its record holds the state and the caller's note (`KeyRecord`).
 * In: requests in the order of their time. Out: of the last one, whether it passed, its records and their verdicts.
 * Not here: leases, turns, blocks, reservations, moving limits, recorded refunds and resets; `PlainReplay.of` is undefined for rules with
 * any of them, and `test/analysis/plain-replay.test.ts` holds both ways to the same answers.
 */
import { type Attributes, type Rule, type RuleBook, ruleBook } from "sluice";
import {
  type Check,
  counterBytes,
  entriesFit,
  isCounting,
  type Model,
  models,
  type Policy,
  type State,
  type Verdict,
} from "sluice/internal";

/** One counter, and what its caller notes about it. */
export interface KeyRecord<Note> {
  readonly key: string;
  readonly rule: string;
  readonly mode: Check["plan"]["mode"];
  readonly model: Model<Policy, State>;
  readonly note: Note;
  state: State;
}

/** What a caller keeps beside a counter. */
export interface Notes<Note> {
  readonly begin: (check: Check) => Note;
  /** Whether it may be forgotten once its counter has ended; the next request of the key begins another. */
  readonly isOver: (note: Note, nowMs: number) => boolean;
}

/** So many counters stay, ended or not: to make one again costs more than to find it. */
const FEW_RECORDS = 65_536;
/** For each counter that is added beyond these. Two: the sweep is faster than the growth. */
const LOOKS = 2;
/** Of how many the idlest gives way where memory is short. */
const EVICTION_LOOKS = 16;

export class PlainReplay<Note> {
  readonly #book: RuleBook;
  readonly #notes: Notes<Note>;
  readonly #maxBytes: number;
  /** Rules under which one counter can meet several policies: there an ended state must not be looked at by another policy. */
  readonly #overridden: ReadonlySet<string>;
  readonly #charge = { cost: 0, nowMs: 0, requestId: "" };
  #records = new Map<string, KeyRecord<Note>>();
  #cursor = this.#records.values();
  #bytes = 0;
  #refusals = 0;
  nowMs = 0;
  /** Counters that gave way before their end. */
  evicted = 0;
  /** Of the last request. */
  allowed = true;
  checks: readonly Check[] = [];
  readonly records: KeyRecord<Note>[] = [];
  readonly verdicts: Verdict[] = [];
  /** The place of the enforced check that refused with the longest wait, as a decision names it; -1 if none did. */
  refuser = -1;

  private constructor(rules: readonly Rule[], notes: Notes<Note>, maxBytes: number) {
    this.#book = ruleBook(rules);
    this.#notes = notes;
    this.#maxBytes = maxBytes;
    this.#overridden = new Set(rules.filter(isCounting).flatMap(({ id, overrides }) => (overrides ? [id] : [])));
  }

  /** `rules` that were validated; undefined where one of them does more than count. */
  static of<Note>(rules: readonly Rule[], notes: Notes<Note>, maxBytes: number): PlainReplay<Note> | undefined {
    const counting = rules.filter((rule) => rule.mode !== "off");
    return counting.every(isPlain) ? new PlainReplay(rules, notes, maxBytes) : undefined;
  }

  /** A request that arrives before the last one is decided at the time of that one. Throws what a check would throw. */
  decide(attributes: Attributes, atMs: number): void {
    if (atMs > this.nowMs) this.nowMs = atMs;
    const checks = this.#book.checks(attributes, undefined);
    this.checks = checks;
    for (let i = 0; i < checks.length; i++)
      if (checks[i]!.plan.policy.stored === "rolling-window") entriesFit(checks[i]!);
    this.#look(checks, this.nowMs);
    this.allowed = this.#refusals === 0;
    for (let i = 0; i < checks.length; i++) {
      const { cost, live } = checks[i]!;
      if (!this.verdicts[i]!.allowed || cost === 0) continue;
      // As in the memory store: a candidate is judged as if it stood in its live check's place.
      if (this.allowed || (this.#refusals === 1 && live >= 0 && this.refuser === live)) this.#take(i, cost);
    }
  }

  #look(checks: readonly Check[], nowMs: number): void {
    const { records, verdicts } = this;
    this.#refusals = 0;
    this.refuser = -1;
    let longestMs = -1;
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i]!;
      const record = this.#recordOf(check, nowMs);
      const verdict = record.model.look(record.state, check.plan.policy, check.cost, nowMs);
      records[i] = record;
      verdicts[i] = verdict;
      if (verdict.allowed) continue;
      const { state } = record;
      state.endsAtMs = Math.max(state.endsAtMs, nowMs + verdict.resetAfterMs);
      if (record.mode !== "enforce") continue;
      this.#refusals++;
      if (verdict.reason !== "cost-exceeds-limit") state.isUsedUp = true;
      if (verdict.retryAfterMs > longestMs) {
        longestMs = verdict.retryAfterMs;
        this.refuser = i;
      }
    }
  }

  #take(at: number, cost: number): void {
    const record = this.records[at]!;
    const { key, model, state, mode } = record;
    const charge = this.#charge;
    charge.cost = cost;
    charge.nowMs = this.nowMs;
    const ring = (state as { ring?: unknown }).ring;
    const verdict = this.verdicts[at]!;
    model.charge(state, this.checks[at]!.plan.policy, charge, verdict);
    if (mode === "enforce") state.isUsedUp = verdict.remaining <= 0;
    if (ring === undefined || ring === (state as { ring?: unknown }).ring) return;
    // It may have given way to another counter of the same request.
    if (this.#records.get(key) !== record) return;
    const bytes = counterBytes(key, state);
    this.#bytes += bytes - state.bytes;
    state.bytes = bytes;
  }

  #recordOf(check: Check, nowMs: number): KeyRecord<Note> {
    const known = this.#records.get(check.key) ?? this.#add(check, nowMs);
    // An ended state means the same as none, but only to the policy that it was charged under.
    if (known.state.endsAtMs < nowMs && this.#overridden.size > 0 && this.#overridden.has(known.rule))
      known.state = this.#begun(known.model, known.key, known.state.bytes);
    return known;
  }

  #begun(model: Model<Policy, State>, key: string, replacedBytes: number): State {
    const state = model.fresh();
    state.bytes = counterBytes(key, state);
    this.#bytes += state.bytes - replacedBytes;
    return state;
  }

  #add(check: Check, nowMs: number): KeyRecord<Note> {
    if (this.#records.size >= FEW_RECORDS) this.#sweep(nowMs);
    while (this.#bytes > this.#maxBytes && this.#records.size > 0) this.#evict(nowMs);
    const { key, plan } = check;
    const model = models[plan.policy.stored];
    const state = this.#begun(model, key, 0);
    const record = { key, rule: plan.rule, mode: plan.mode, model, note: this.#notes.begin(check), state };
    this.#records.set(key, record);
    return record;
  }

  #sweep(nowMs: number): void {
    for (let i = 0; i < LOOKS; i++) {
      const record = this.#next();
      if (record !== undefined && this.#isOver(record, nowMs)) this.#drop(record);
    }
  }

  #isOver({ state, note }: KeyRecord<Note>, nowMs: number): boolean {
    return state.endsAtMs < nowMs && this.#notes.isOver(note, nowMs);
  }

  /** The one nearest to its end; a counter that is used up only if all others looked at are: to forget it admits a refused client. */
  #evict(nowMs: number): void {
    let chosen: KeyRecord<Note> | undefined;
    for (let i = 0; i < EVICTION_LOOKS; i++) {
      const record = this.#next();
      if (record === undefined) break;
      if (chosen === undefined || givesWayBefore(record.state, chosen.state)) chosen = record;
    }
    if (chosen === undefined) return;
    if (!this.#isOver(chosen, nowMs)) this.evicted++;
    this.#drop(chosen);
  }

  #drop({ key, state }: KeyRecord<Note>): void {
    this.#records.delete(key);
    this.#bytes -= state.bytes;
  }

  /** Round-robin: a map's iterator goes on past deletions and insertions. */
  #next(): KeyRecord<Note> | undefined {
    let step = this.#cursor.next();
    if (step.done === true) {
      this.#cursor = this.#records.values();
      step = this.#cursor.next();
    }
    return step.done === true ? undefined : step.value;
  }
}

function givesWayBefore(one: State, other: State): boolean {
  return one.isUsedUp === other.isUsedUp ? one.endsAtMs < other.endsAtMs : other.isUsedUp;
}

/** Whether a rule needs nothing but counters, under any of its numbers. */
function isPlain(rule: Rule): boolean {
  if (!isCounting(rule) || rule.algorithm === "concurrency") return false;
  if (rule.estimate !== undefined || rule.adapt !== undefined) return false;
  const layers = [rule, rule.candidate ?? {}, ...(rule.variants ?? []), ...(rule.overrides ?? [])];
  return layers.every((layer) => !("maxWait" in layer) && !("blockFor" in layer));
}
