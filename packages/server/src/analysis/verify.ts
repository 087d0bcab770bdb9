/**
 * A recording held against itself: every decision is made again by the models, at the time, in the order and under the rules that the
 * recording has, and compared with what the store answered then. In: lines, by their instance. Out: the differences.
 *
 * Lines of a store in memory are in its order. Instances that share a Redis write down its answers as they arrive; the time of each, in
 * microseconds by Redis's clock, is the order in which they were made.
 *
 * Where a recording cannot know what the counters held, a difference is *uncertain*: after a start with counters in Redis, after lines
 * that were dropped, after an outage (a call without an answer may have counted), after a clock was set back, and under rules that look into
 * hashed values. The replay then follows the recording, so that one unknown charge does not spread. So is the first look at a counter that
 * had just ended: up to version 7.0 Redis judges by the start of a script whether a key has ended, and the script reads the clock later.
 * What is left of such a counter matters where its rule was edited to refill more slowly, and for the level of a block.
 */
import { type MemoryStore, memoryStore } from "sluice";
import { asCharges, type Check, chargesOf, joinChecks, redisTwin, type StoreReply } from "sluice/internal";
import type {
  CheckLine,
  DecisionLine,
  HeaderLine,
  LeaseLine,
  PartLine,
  RecordingLine,
  RefundLine,
  TimedLine,
} from "../recording/recording-lines.js";
import { EventQueue } from "./event-queue.js";
import { LastNamed } from "./last-named.js";
import { RecordedBooks } from "./recorded-books.js";
import { checkLines, compareDecisions, uncertainForMs } from "./recorded-decisions.js";

interface Difference {
  readonly at: string;
  readonly entry: string;
  readonly recorded: readonly CheckLine[];
  readonly replayed: readonly CheckLine[];
}

export interface Verification {
  /** Decisions that were made again. */
  readonly decisions: number;
  /** Another rule refused or passed than was recorded. */
  readonly differences: number;
  /** The same rules refused and passed, but a remaining count or a wait is another. */
  readonly otherNumbers: number;
  /** Differences for which the recording lacks the reason. */
  readonly uncertain: number;
  /** Decisions that failure policies made while the store was away, or load shedding: taken as they are. */
  readonly byPolicy: number;
  /** Decisions under rules with prefetch, which units in the hands of instances made: taken as they are. */
  readonly prefetched: number;
  readonly dropped: number;
  /** Rule sets that could not be read. */
  readonly unreadable: readonly string[];
  readonly samples: readonly Difference[];
}

/** What a refund, a release or a renewal names. */
interface Named {
  readonly checks: readonly Check[];
  readonly reply: StoreReply;
}

/** Counters: one set for all instances of a Redis, one for each instance that counts in memory. */
interface Counters {
  readonly store: MemoryStore;
  readonly named: LastNamed<Named>;
  /** Until when, at the latest, the recording lacked something. */
  uncertainSinceMs: number;
  latestMs: number;
  /** By key: when a counter of Redis ends, and until when what it holds is uncertain because it was looked at around its end. */
  readonly ends: LastNamed<number>;
  readonly uncertainUntil: LastNamed<number>;
}

interface Source {
  readonly books: RecordedBooks;
  readonly counters: Counters;
  readonly countsInMemory: boolean;
  readonly segment: number;
  /** The recording lacks something before its next line. */
  isLacking: boolean;
}

/** A line that was read, until all that came before it were. */
interface Waiting {
  readonly source: Source;
  readonly line: TimedLine;
  readonly isAfterGap: boolean;
}

const MOST_SAMPLES = 10;
const MOST_UNREADABLE = 10;
/** Later refunds and renewals of older requests are uncertain. */
const LEAST_NAMED = 50_000;
const MOST_BYTES = 2 ** 30;
/** A busy machine may hold up a script between its start and its look at the clock. */
const LONGEST_HOLD_UP_MS = 20;
/** An answer is written down when it arrives: a deadline of Redis, and a pause of the instance, after it was made. */
const LATEST_MS = 5_000;
/** Where a second has more lines than this, those that came late by more than these are out of order. */
const MOST_WAITING = 500_000;
/** The counters of all instances that share one; no instance is named so. */
const REDIS = "";
/** A refusal without Redis comes after the one that it repeats. */
const END_OF_MS = 0.9995;

export class Verifier {
  readonly #sources = new Map<string, Source>();
  readonly #shared = new Map<string, Counters>();
  readonly #counts = {
    decisions: 0,
    differences: 0,
    otherNumbers: 0,
    uncertain: 0,
    byPolicy: 0,
    prefetched: 0,
    dropped: 0,
  };
  readonly #unreadable: string[] = [];
  readonly #samples: Difference[] = [];
  readonly #waiting = new EventQueue<Waiting>();
  #newestMs = 0;
  #nowMs = 0;

  /** `instance`: as the header of the line's segment names it. */
  add(instance: string, line: RecordingLine): void {
    if ("sluice" in line) {
      this.#begin(line);
      return;
    }
    const source = this.#sources.get(instance);
    if (source === undefined) return;
    if ("at" in line) this.#read(source, line);
    else if ("rule" in line) source.books.add(line);
    else if ("count" in line) source.books.begin(line);
    else if ("dropped" in line) {
      this.#counts.dropped += line.dropped;
      this.#isLacking(source);
    }
  }

  #read(source: Source, line: TimedLine): void {
    const waiting: Waiting = { source, line, isAfterGap: source.isLacking };
    source.isLacking = false;
    if (source.countsInMemory) {
      this.#happened(waiting);
      return;
    }
    this.#waiting.add(line.at + (line.us === undefined ? END_OF_MS : line.us / 1_000), waiting);
    this.#newestMs = Math.max(this.#newestMs, line.at);
    while (this.#waiting.nextMs < this.#newestMs - LATEST_MS || this.#waiting.size > MOST_WAITING)
      this.#happened(this.#waiting.take()!.item);
  }

  /** What is missing may have been made at any time from the last line before the gap to the first after it. */
  #isLacking(source: Source): void {
    source.isLacking = true;
    lacks(source.counters, source.countsInMemory ? this.#nowMs : this.#newestMs);
  }

  #begin({ instance, segment, store, fresh, hashed }: HeaderLine): void {
    const before = this.#sources.get(instance);
    const counters = before?.counters ?? this.#countersOf(store === "memory" ? instance : REDIS);
    const isNext = before !== undefined && segment === before.segment + 1;
    const onUnreadable = (why: string): void => {
      if (this.#unreadable.length < MOST_UNREADABLE) this.#unreadable.push(why);
      this.#isLacking(source);
    };
    // Decisions under the rules of the segment before may arrive in this one.
    const books = isNext
      ? before.books
      : new RecordedBooks({ hashed: Array.isArray(hashed) ? hashed : [], onUnreadable });
    const isLacking = isNext ? before.isLacking : before !== undefined || fresh !== true;
    const source: Source = { books, counters, countsInMemory: store === "memory", segment, isLacking };
    this.#sources.set(instance, source);
  }

  #countersOf(domain: string): Counters {
    let counters = this.#shared.get(domain);
    if (counters === undefined) {
      const clock = { now: () => this.#nowMs };
      const options = { clock, maxBytes: MOST_BYTES, onMemoryLimit: () => {} };
      const store = domain === REDIS ? redisTwin(options) : memoryStore(options);
      counters = {
        store,
        named: new LastNamed(LEAST_NAMED),
        uncertainSinceMs: Number.NEGATIVE_INFINITY,
        latestMs: 0,
        ends: new LastNamed(LEAST_NAMED),
        uncertainUntil: new LastNamed(LEAST_NAMED),
      };
      this.#shared.set(domain, counters);
    }
    return counters;
  }

  #happened({ source, line, isAfterGap }: Waiting): void {
    const { counters } = source;
    this.#nowMs = line.at;
    if (isAfterGap) lacks(counters, line.at);
    if ("checks" in line) this.#decide(source, line);
    else if ("refund" in line) this.#refund(counters, line);
    else if ("giveBack" in line) {
      const checks = this.#checksOf(source, line.giveBack, line.rules)?.checks;
      if (checks === undefined) lacks(counters, this.#nowMs);
      else counters.store.giveBack(checks);
    } else if ("reset" in line) {
      const found = source.books.inForce(line.rules);
      const keys = attempt(() => found?.book.keysOf(line.reset, line.attributes));
      if (keys === undefined) lacks(counters, this.#nowMs);
      else counters.store.reset(keys);
    } else if ("block" in line) {
      const key = attempt(() => source.books.inForce(line.rules)?.book.blockKeyOf(line.block, line.attributes));
      if (key === undefined) lacks(counters, this.#nowMs);
      else counters.store.block(key, line.lengthMs);
    } else this.#lease(counters, line);
  }

  #decide(source: Source, line: DecisionLine): void {
    const { counters } = source;
    if (line.degraded !== undefined || line.prefetched === true) {
      if (line.degraded === undefined) this.#counts.prefetched++;
      else this.#counts.byPolicy++;
      if (line.degraded !== "load") lacks(counters, line.at);
      return;
    }
    // A clock that was set back: counters that had ended live again, unless they were swept meanwhile.
    if (line.at < counters.latestMs && source.countsInMemory) lacks(counters, counters.latestMs);
    counters.latestMs = Math.max(counters.latestMs, line.at);
    const found = this.#checksOf(source, line.parts ?? [partOf(line)], line.rules);
    if (line.peek !== true) this.#counts.decisions++;
    if (found === undefined) {
      lacks(counters, line.at);
      this.#counts.uncertain++;
      return;
    }
    const { checks, opaque } = found;
    if (line.remembered === true) {
      this.#lookAgain(counters, line, checks);
      return;
    }
    const request = {
      checks,
      charge: line.peek !== true,
      entryId: line.entry,
      id: line.id,
      fingerprint: "",
      rulesVersion: line.rules,
    };
    const reply = counters.store.decide(request);
    const replayed = checkLines(reply.repeated?.checks ?? checks, reply);
    if (reply.repeated === undefined) this.#name(counters, line, { checks, reply });
    if (line.peek === true) return;
    const difference = compareDecisions(line.checks, replayed);
    const isAroundEnd = !source.countsInMemory && this.#isAroundEnd(counters, line, checks, difference !== "none");
    if (difference === "none") return;
    const isUncertain =
      isAroundEnd ||
      line.at <= counters.uncertainSinceMs + uncertainForMs(checks, line) ||
      [...line.checks, ...replayed].some(([rule]) => opaque.has(rule));
    if (isUncertain) this.#counts.uncertain++;
    else {
      this.#counts[difference]++;
      if (this.#samples.length < MOST_SAMPLES) {
        const { at, entry, checks: recorded } = line;
        this.#samples.push({ at: new Date(at).toISOString(), entry, recorded, replayed });
      }
    }
    if (difference === "differences") this.#follow(counters, line, { checks, reply });
  }

  /** Whether a counter of the decision had ended just before it, or before an earlier decision that this explained. Notes the next ends. */
  #isAroundEnd(
    { store, ends, uncertainUntil }: Counters,
    line: DecisionLine,
    checks: readonly Check[],
    isOther: boolean,
  ): boolean {
    const keys = checks.flatMap(({ key, block }) => (block === undefined ? [key] : [key, block.key]));
    const isAround =
      isOther &&
      keys.some((key) => {
        const sinceEndMs = line.at - (ends.get(key) ?? Number.NEGATIVE_INFINITY);
        return (sinceEndMs > 0 && sinceEndMs <= LONGEST_HOLD_UP_MS) || line.at <= (uncertainUntil.get(key) ?? 0);
      });
    for (const key of keys) {
      const endMs = store.endOf(key);
      if (endMs !== undefined) ends.set(key, endMs);
      if (isAround) uncertainUntil.set(key, line.at + uncertainForMs(checks, line));
    }
    return isAround;
  }

  /**
   * A refusal that an instance remembered, which charged nothing: the counters must refuse it too. Its waits were counted down by the instance's
   * own clock. Where the counters would admit it, another instance gave something back meanwhile.
   */
  #lookAgain({ store }: Counters, line: DecisionLine, checks: Check[]): void {
    const { entry: entryId, rules: rulesVersion } = line;
    const reply = store.decide({ checks, charge: false, entryId, id: undefined, fingerprint: "", rulesVersion });
    if (checks.every(({ plan }, i) => plan.mode !== "enforce" || reply.verdicts[i]!.allowed)) this.#counts.uncertain++;
  }

  /** The counters as the recording has them: charged if and only if the request passed. */
  #follow({ store }: Counters, line: DecisionLine, { checks, reply }: Named): void {
    const charges = chargesOf(checks, reply, line.entry);
    if (line.allowed === 0 && charges.length > 0) store.refund({ charges, id: line.id });
    else if (line.allowed === 1 && charges.length === 0 && line.repeated !== true) {
      store.decide({
        checks: asCharges(checks),
        charge: true,
        entryId: line.entry,
        id: undefined,
        fingerprint: "",
        rulesVersion: line.rules,
      });
    }
  }

  #name({ named }: Counters, { entry, entries = [] }: DecisionLine, what: Named): void {
    if (entry === "" || !what.reply.verdicts.some(({ charged }) => charged)) return;
    for (const name of [entry, ...entries]) named.set(name, what);
  }

  #refund(counters: Counters, { refund, id }: RefundLine): void {
    const found = counters.named.get(refund);
    const charges = found === undefined ? [] : chargesOf(found.checks, found.reply, refund);
    if (charges.length === 0) lacks(counters, this.#nowMs);
    else counters.store.refund({ charges, id });
  }

  #lease(counters: Counters, { release, renew }: LeaseLine): void {
    const names = release ?? renew ?? [];
    const places = names.flatMap((name) => {
      const found = counters.named.get(name);
      return found === undefined ? [] : placesOf(found, name);
    });
    if (places.length === 0) lacks(counters, this.#nowMs);
    else if (release === undefined) counters.store.renew({ places });
    else counters.store.release({ places });
  }

  /** Undefined where the rules are not known, or refuse the attributes as malformed. */
  #checksOf(
    { books }: Source,
    parts: readonly PartLine[],
    version: number,
  ): { checks: Check[]; opaque: ReadonlySet<string> } | undefined {
    const opaque = new Set<string>();
    const lists: Check[][] = [];
    for (const { attributes, cost, charge, book } of parts) {
      const found = book === undefined ? books.inForce(version) : books.ofPart(book);
      const checks = attempt(() => found?.book.checks(attributes, cost));
      if (found === undefined || checks === undefined) return undefined;
      for (const rule of found.opaque) opaque.add(rule);
      lists.push(charge === true ? asCharges(checks) : checks);
    }
    return { checks: joinChecks(lists).checks, opaque };
  }

  end(): Verification {
    for (let next = this.#waiting.take(); next !== undefined; next = this.#waiting.take()) this.#happened(next.item);
    for (const { store } of this.#shared.values()) store.close();
    return { ...this.#counts, unreadable: this.#unreadable, samples: this.#samples };
  }
}

function lacks(counters: Counters, untilMs: number): void {
  counters.uncertainSinceMs = Math.max(counters.uncertainSinceMs, untilMs);
}

function partOf({ attributes, cost, charge }: DecisionLine): PartLine {
  return { attributes, ...(cost !== undefined && { cost }), ...(charge === true && { charge }) };
}

function attempt<T>(read: () => T | undefined): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function placesOf({ checks, reply }: Named, entryId: string) {
  return checks.flatMap(({ key, cost, plan: { policy } }, i) =>
    policy.stored === "concurrency" && reply.verdicts[i]!.charged
      ? [{ key, entryId, places: cost, ttlMs: policy.ttlMs }]
      : [],
  );
}
