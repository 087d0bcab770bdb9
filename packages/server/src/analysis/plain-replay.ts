/**
 * The fast path of a replay: access log requests under rules that only count. Decides with the same models as `replay.ts`, but without
 * creating requests, replies and decisions.
 * In: requests in order of time. Out: for the last one, whether it passed, its counters and their verdicts.
 * Not here: leases, turns, blocks, reservations, adaptive limits, recorded refunds and resets; `PlainReplay.of` is undefined for rules with
 * any of them, and `plain-replay.test.ts` verifies that both paths give the same answers.
 */
import { type Attributes, type Rule, ruleBook } from "sluice";
import {
  type Check,
  entriesFit,
  isCounting,
  matcherOf,
  type RuleMatcher,
  type State,
  type Verdict,
} from "sluice/internal";
import { type Client, ClientCounters, type KeyRecord, type Notes } from "./client-counters.js";
import { MatchedRules } from "./matched-rules.js";

type Clients<Note> = ReturnType<ClientCounters<Note>["tableOf"]>;

/** How a rule's counters are found by a single attribute's value. */
interface Way<Note> {
  readonly attribute: string;
  readonly slot: number;
  readonly clients: Clients<Note>;
}

export class PlainReplay<Note> {
  readonly #matcher: RuleMatcher;
  readonly #matched: MatchedRules;
  readonly #notes: Notes<Note>;
  readonly #counters: ClientCounters<Note>;
  readonly #byKey: Clients<Note>;
  /** By rule index; undefined for rules whose counter, numbers or cost depend on the request: their checks are created for each request. */
  readonly #ways: readonly (Way<Note> | undefined)[];
  readonly #hasOthers: boolean;
  /** The distinct tables of `#ways`. */
  readonly #tables: readonly Way<Note>[];
  readonly #expected: (Client<Note> | undefined)[] = [];
  /** Accumulates what was prefetched: the compiler drops reads whose result is unused. */
  touched = 0;
  readonly #checks: Check[] = [];
  readonly #charge = { cost: 0, nowMs: 0, requestId: "" };
  #refusals = 0;
  nowMs = 0;
  /** For the last request. */
  allowed = true;
  readonly records: KeyRecord<Note>[] = [];
  readonly verdicts: Verdict[] = [];
  /** The number of entries in both. */
  count = 0;
  /** Index of the enforced check that refused with the longest wait, as a decision reports it; -1 if none did. */
  refuser = -1;

  private constructor(rules: readonly Rule[], notes: Notes<Note>, maxBytes: number) {
    this.#matcher = matcherOf(ruleBook(rules));
    this.#counters = new ClientCounters(notes, maxBytes);
    this.#byKey = this.#counters.tableOf(BY_KEY);
    this.#ways = rules.filter(({ mode }) => mode !== "off").map((_, place) => this.#wayOf(place));
    this.#hasOthers = this.#ways.includes(undefined);
    this.#tables = [...new Map(this.#ways.flatMap((way) => (way === undefined ? [] : [[way.slot, way]]))).values()];
    this.#matched = new MatchedRules(this.#matcher, this.#ways.length);
    this.#notes = notes;
  }

  /** `rules` must be validated; undefined if one of them does more than count. */
  static of<Note>(rules: readonly Rule[], notes: Notes<Note>, maxBytes: number): PlainReplay<Note> | undefined {
    const inForce = rules.filter(({ mode }) => mode !== "off");
    return inForce.every(isPlain) ? new PlainReplay(rules, notes, maxBytes) : undefined;
  }

  #wayOf(place: number): Way<Note> | undefined {
    const { keys, keySlots, overrides, costAttribute, plans, conditions } = this.#matcher.ruleAt(place);
    if (keys === undefined || overrides !== undefined || costAttribute !== undefined) return undefined;
    // A sorted set refuses costs that it cannot write at once, so it needs the request's cost.
    if (plans[0]![0]!.policy.stored === "rolling-window") return undefined;
    const slot = keySlots[0]!;
    const { attribute } = conditions.find((condition) => condition.slot === slot)!;
    return { attribute, slot, clients: this.#counters.tableOf(slot) };
  }

  /** Counters evicted before their end. */
  get evicted(): number {
    return this.#counters.evicted;
  }

  /**
   * Prefetches the counters of upcoming requests; changes nothing. The counters of many clients are not in the CPU's caches, and finding
   * them one request at a time stalls on each miss; requested side by side, the misses overlap.
   */
  expect(requests: readonly (Attributes | undefined)[], count: number): void {
    const expected = this.#expected;
    for (const { attribute, clients } of this.#tables) {
      for (let i = 0; i < count; i++) {
        const value = requests[i]?.[attribute];
        expected[i] = typeof value === "string" ? clients.get(value) : undefined;
      }
      this.touched = touchStates(expected, count) + touchInside(expected, count, this.#notes);
    }
  }

  /** A request that arrives before the previous one is decided at that one's time. Throws what a check would throw. */
  decide(attributes: Attributes, atMs: number): void {
    if (atMs > this.nowMs) this.nowMs = atMs;
    if (this.#hasOthers) {
      const { entries, count } = this.#matcher.find(attributes);
      // Before any counter is touched, as a malformed cost throws.
      this.#makeChecks(entries, count);
      this.#findRecords(attributes, entries, count);
    } else {
      const places = this.#matched.find(attributes);
      this.#findRecords(attributes, places, places.length);
    }
    this.#look();
    this.allowed = this.#refusals === 0;
    for (let i = 0; i < this.count; i++) {
      const { cost, live } = this.records[i]!;
      if (!this.verdicts[i]!.allowed || cost === 0) continue;
      // Same as the memory store: a candidate is evaluated as if it replaced its live check.
      if (this.allowed || (this.#refusals === 1 && live >= 0 && this.refuser === live)) this.#take(i, cost);
    }
  }

  #makeChecks(entries: readonly number[], count: number): void {
    const checks = this.#checks;
    let at = 0;
    for (let i = 0; i < count; i++) {
      const place = entries[i]!;
      const from = at;
      at = this.#ways[place] === undefined ? this.#matcher.checksOf(place, checks, at) : at + 1;
      if (this.#ways[place] !== undefined) continue;
      for (let j = from; j < at; j++) if (checks[j]!.plan.policy.stored === "rolling-window") entriesFit(checks[j]!);
    }
  }

  #findRecords(attributes: Attributes, places: readonly number[], count: number): void {
    let at = 0;
    let clients: Clients<Note> | undefined;
    let client: Client<Note> | undefined;
    for (let i = 0; i < count; i++) {
      const place = places[i]!;
      const way = this.#ways[place];
      if (way === undefined) {
        at = this.#findByKey(place, at);
        continue;
      }
      if (client === undefined || way.clients !== clients) {
        clients = way.clients;
        const value = attributes[way.attribute];
        // Other values have been converted to strings by the matcher.
        const name = typeof value === "string" ? value : this.#matcher.values[way.slot]!;
        client = this.#counters.clientOf(clients, name, this.nowMs);
      }
      this.records[at++] = client.records[place] ?? this.#begin(client, place, attributes);
    }
    this.count = at;
  }

  #begin(client: Client<Note>, place: number, attributes: Attributes): KeyRecord<Note> {
    this.#matcher.find(attributes);
    this.#matcher.checksOf(place, scratch, 0);
    return this.#counters.add(client, place, scratch[0]!, this.nowMs);
  }

  /** For a live check, and for its candidate. */
  #findByKey(place: number, from: number): number {
    const end = from + (this.#matcher.ruleAt(place).candidatePlans.length > 0 ? 2 : 1);
    for (let at = from; at < end; at++) {
      const check = this.#checks[at]!;
      const client = this.#counters.clientOf(this.#byKey, check.key, this.nowMs);
      const record = client.records[0] ?? this.#counters.add(client, 0, check, this.nowMs);
      record.plan = check.plan;
      record.cost = check.cost;
      record.live = check.live;
      // An ended state is equivalent to none only under the policy it was charged with, and an override may bring another.
      if (record.state.endsAtMs < this.nowMs) this.#counters.renew(record);
      this.records[at] = record;
    }
    return end;
  }

  #look(): void {
    const { records, verdicts, nowMs } = this;
    this.#refusals = 0;
    this.refuser = -1;
    let longestMs = -1;
    for (let i = 0; i < this.count; i++) {
      const { model, state, plan, cost } = records[i]!;
      const { policy, mode } = plan;
      const verdict = model.look(state, policy, cost, nowMs);
      verdicts[i] = verdict;
      if (verdict.allowed) continue;
      // Same as the memory store: if a window grows, its count must not be lost at the old end.
      state.endsAtMs = Math.max(state.endsAtMs, nowMs + verdict.resetAfterMs);
      if (mode !== "enforce") continue;
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
    const { model, plan } = record;
    const state: AnyState = record.state;
    const charge = this.#charge;
    charge.cost = cost;
    charge.nowMs = this.nowMs;
    const { ring } = state;
    const verdict = this.verdicts[at]!;
    model.charge(state, plan.policy, charge, verdict);
    if (plan.mode === "enforce") state.isUsedUp = verdict.remaining <= 0;
    if (ring !== state.ring) this.#counters.measure(record);
  }
}

/** For a rolling window, also where its arrivals are stored. */
type AnyState = State & { readonly ring?: Float64Array; readonly head?: number };

/** Returns a sum so that the reads are not optimised away. */
function touchStates<Note>(clients: readonly (Client<Note> | undefined)[], count: number): number {
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const records = clients[i]?.records;
    if (records === undefined) continue;
    for (let at = 0; at < records.length; at++) sum += records[at]?.state.endsAtMs ?? 0;
  }
  return sum;
}

function touchInside<Note>(clients: readonly (Client<Note> | undefined)[], count: number, notes: Notes<Note>): number {
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const records = clients[i]?.records;
    if (records === undefined) continue;
    for (let at = 0; at < records.length; at++) {
      const record = records[at];
      if (record === undefined) continue;
      const { ring, head = 0 }: AnyState = record.state;
      sum += notes.touch(record.note) + record.cost;
      if (ring !== undefined && ring.length > 0) sum += ring[head]!;
    }
  }
  return sum;
}

const BY_KEY = -1;
/** Rules found by a single value have a single check. */
const scratch: Check[] = [];

/** Whether a rule needs nothing but counters, with any of its numbers. */
function isPlain(rule: Rule): boolean {
  if (!isCounting(rule) || rule.algorithm === "concurrency") return false;
  if (rule.estimate !== undefined || rule.adapt !== undefined) return false;
  const layers = [rule, rule.candidate ?? {}, ...(rule.variants ?? []), ...(rule.overrides ?? [])];
  return layers.every((layer) => !("maxWait" in layer) && !("blockFor" in layer));
}
