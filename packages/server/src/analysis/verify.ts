/**
 * Verifies a recording against the models: every decision is made again at the recorded time, in the recorded order and under the recorded
 * rules, and compared with the store's answer. In: lines, by instance. Out: the differences.
 *
 * Lines of a memory store are in its order. Instances that share a Redis record its answers as they arrive; the order of decisions is given
 * by each one's time, in microseconds by Redis's clock.
 *
 * If a recording cannot know the counters' contents, a difference is *uncertain*: after a start with existing counters in Redis, after
 * dropped lines, after an outage (a call without an answer may have counted), after a clock was set back, and under rules that interpret
 * hashed values. The replay then follows the recording, so that one unknown charge does not spread. The first access to a counter that had
 * just ended is uncertain too: up to version 7.0 Redis checks expiry by the start time of a script, and the script reads the clock later.
 * The remains of such a counter matter if its rule was edited to refill more slowly, and for the level of a block.
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
  /** Decisions that were replayed. */
  readonly decisions: number;
  /** A rule's outcome differs from the recorded one. */
  readonly differences: number;
  /** Equal outcomes, but a remaining count or a wait differs. */
  readonly otherNumbers: number;
  /** Differences that gaps in the recording may explain. */
  readonly uncertain: number;
  /** Decisions by failure policies while the store was down, or by load shedding: accepted as recorded. */
  readonly byPolicy: number;
  /** Decisions under rules with prefetch, made from units held by instances: accepted as recorded. */
  readonly prefetched: number;
  readonly dropped: number;
  /** Rule sets that could not be read. */
  readonly unreadable: readonly string[];
  readonly samples: readonly Difference[];
}

/** The target of a refund, a release or a renewal. */
interface Named {
  readonly checks: readonly Check[];
  readonly reply: StoreReply;
}

/** Counters: one set for all instances of a Redis, one per instance with a memory store. */
interface Counters {
  readonly store: MemoryStore;
  readonly named: LastNamed<Named>;
  /** The latest time at which the recording lacked something. */
  uncertainSinceMs: number;
  latestMs: number;
  /** By key: when a Redis counter ends, and until when its contents are uncertain because it was accessed around its end. */
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

/** A line that waits until all earlier ones have been read. */
interface Waiting {
  readonly source: Source;
  readonly line: TimedLine;
  readonly isAfterGap: boolean;
}

const MOST_SAMPLES = 10;
const MOST_UNREADABLE = 10;
/** Refunds and renewals of older requests are uncertain. */
const LEAST_NAMED = 50_000;
const MOST_BYTES = 2 ** 30;
/** A busy machine may delay a script between its start and its reading of the clock. */
const LONGEST_HOLD_UP_MS = 20;
/** An answer is recorded when it arrives: up to a Redis deadline plus a pause of the instance after it was made. */
const LATEST_MS = 5_000;
/** If a second has more lines than this, late lines may end up out of order. */
const MOST_WAITING = 500_000;
/** The counters shared by all instances on Redis; no instance has this name. */
const REDIS = "";
/** A refusal from the negative cache comes after the one that it repeats. */
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

  /** `instance`: from the header of the line's segment. */
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

  /** What is missing may have happened at any time between the lines around the gap. */
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
    // Decisions under the previous segment's rules may arrive in this one.
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
    // A clock set back revives ended counters, unless they have been swept.
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

  /**
   * Whether one of the decision's counters had ended just before it, or before an earlier decision that this explains. Records the next
   * ends.
   */
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
   * A refusal from an instance's negative cache, which charged nothing: the counters must refuse it too. Its waits were counted down by the
   * instance's own clock. If the counters would admit it, another instance gave something back in the meantime.
   */
  #lookAgain({ store }: Counters, line: DecisionLine, checks: Check[]): void {
    const { entry: entryId, rules: rulesVersion } = line;
    const reply = store.decide({ checks, charge: false, entryId, id: undefined, fingerprint: "", rulesVersion });
    if (checks.every(({ plan }, i) => plan.mode !== "enforce" || reply.verdicts[i]!.allowed)) this.#counts.uncertain++;
  }

  /** Makes the counters match the recording: charged if and only if the request passed. */
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

  /** Undefined if the rules are unknown, or refuse the attributes as malformed. */
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
