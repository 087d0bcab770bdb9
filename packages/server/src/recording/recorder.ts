/**
 * Serialises a store's decisions to lines and passes them to the segments. Rules and rule books are written before the first line that
 * needs them, in every segment: each can be read on its own.
 */
import type { Limiter, Rule } from "sluice";
import type { AskedKey, AskedPart, CheckRequest, LeaseRequest, RefundRequest, StoreReply } from "sluice/internal";
import { Decision } from "sluice/internal";
import type { HashedValues } from "./hash-values.js";
import {
  decisionLine,
  FORMAT_VERSION,
  type HeaderLine,
  type LineTime,
  partLines,
  type RecordingLine,
} from "./recording-lines.js";
import type { Segments } from "./segments.js";

interface RecorderOptions {
  readonly segments: Segments;
  readonly hashed: HashedValues;
  readonly instance: string;
  readonly store: string;
  /** Whether all counters are empty. */
  readonly isFresh: boolean;
}

const MOST_RECENT = 4;

export class Recorder {
  readonly #options: RecorderOptions;
  #rules: { readonly rules: readonly Rule[]; readonly version: number } = { rules: [], version: 0 };
  /** The last few versions: a request may be answered after the rules under which it was decided have changed. */
  readonly #recent = new Map<number, readonly Rule[]>();
  /** Versions written to this segment. */
  #written = new Set<number>();
  /** Numbers that lines use to refer to rule books of Envoy requests. */
  readonly #books = new WeakMap<object, number>();
  #bookCount = 0;
  #booksWritten = new Set<number>();
  #segment = 0;
  /** The store's clock, for requests that do not reach it; set by the recording store. */
  storeNowMs: () => number = Date.now;

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** From here on, also records the limiter's rules and the decisions made by policy. */
  watch(limiter: Limiter): void {
    const setRules = (rules: readonly Rule[], version: number): void => {
      this.#rules = { rules, version };
      this.#recent.set(version, rules);
      if (this.#recent.size > MOST_RECENT) this.#recent.delete(this.#recent.keys().next().value!);
      // Otherwise they are written with the head of the next segment.
      if (this.#segment > 0 && !this.#options.segments.needsHead) this.#writeRules(rules, version);
    };
    setRules(limiter.rules, limiter.rulesVersion);
    limiter.on("rules", setRules);
    limiter.on("decision", (decision, request) => {
      const isOwn = decision.degraded !== undefined || decision.guarantee === "prefetched";
      if (isOwn || request.checks.length === 0) this.#notByStore(decision, request as CheckRequest);
    });
  }

  /** The rules version under which a request made now is decided. */
  get rulesVersion(): number {
    return this.#rules.version;
  }

  decided(request: CheckRequest, reply: StoreReply, at: number): void {
    const { checks } = reply.repeated ?? request;
    const allowed =
      request.neverRefused || checks.every(({ plan }, i) => plan.mode !== "enforce" || reply.verdicts[i]!.allowed);
    this.#decision(request, reply, { at, allowed, degraded: undefined });
  }

  /** Decided by a failure policy or from prefetched units, or not counted by any rule: a draft may count it. */
  #notByStore(decision: Decision, request: CheckRequest): void {
    const { checks, verdicts, nowMs } = Decision.originOf(decision);
    const { allowed, guarantee, reason } = decision;
    const degraded = decision.degraded ?? (reason === "load" ? reason : undefined);
    const at = checks.length === 0 ? this.storeNowMs() : nowMs;
    this.#decision({ ...request, checks }, { verdicts, nowMs, guarantee }, { at, allowed, degraded });
  }

  #decision(
    request: CheckRequest,
    reply: StoreReply,
    made: { at: number; allowed: boolean; degraded: string | undefined },
  ): void {
    if (!this.#begin(request.rulesVersion)) return;
    const { hashed, store } = this.#options;
    const isRemote = store !== "memory";
    this.#write(decisionLine({ request, reply, ...made, isRemote, bookOf: this.#bookOf }, hashed));
  }

  refunded({ charges, id }: RefundRequest, time: LineTime): void {
    if (!this.#begin()) return;
    const { hashed } = this.#options;
    for (const refund of new Set(charges.map(({ entryId }) => entryId)))
      this.#write({ ...time, refund, ...(id !== undefined && { id: hashed.id(id) }) });
  }

  gaveBack(parts: readonly AskedPart[], rules: number, time: LineTime): void {
    if (!this.#begin(rules)) return;
    this.#write({ ...time, rules, giveBack: partLines(parts, this.#bookOf, this.#options.hashed) });
  }

  leaseEnded(lease: LeaseRequest, time: LineTime): void {
    if (!this.#begin()) return;
    this.#write({ ...time, release: namesOf(lease) });
  }

  leaseRenewed(lease: LeaseRequest, time: LineTime): void {
    if (!this.#begin()) return;
    this.#write({ ...time, renew: namesOf(lease) });
  }

  wasReset({ rule, attributes }: AskedKey, rules: number, time: LineTime): void {
    if (!this.#begin(rules)) return;
    this.#write({ ...time, rules, reset: rule, attributes: this.#options.hashed.attributes(attributes) });
  }

  wasBlocked({ rule, attributes, lengthMs }: AskedKey & { lengthMs: number }, rules: number, time: LineTime): void {
    if (!this.#begin(rules)) return;
    this.#write({ ...time, rules, block: rule, lengthMs, attributes: this.#options.hashed.attributes(attributes) });
  }

  /** Counters were changed in a way that lines cannot express: what follows is uncertain for a while. */
  lacks(): void {
    if (this.#begin()) this.#write({ dropped: 0 });
  }

  /** The number of a part's own rule book, written first if this segment lacks it. */
  readonly #bookOf = ({ book }: AskedPart): number | undefined => {
    if (book === undefined) return undefined;
    let number = this.#books.get(book);
    if (number === undefined) {
      number = ++this.#bookCount;
      this.#books.set(book, number);
    }
    if (!this.#booksWritten.has(number)) {
      this.#booksWritten.add(number);
      this.#writeRules(book.rules, number, true);
    }
    return number;
  };

  /** Writes what a line under these rules needs before it: the segment's head, and the rules. False while nothing can be recorded. */
  #begin(version = this.#rules.version): boolean {
    const { segments } = this.#options;
    if (!segments.isOpen) return false;
    if (segments.needsHead) this.#writeHead();
    const rules = this.#written.has(version) ? undefined : this.#recent.get(version);
    if (rules !== undefined) this.#writeRules(rules, version);
    return true;
  }

  #writeHead(): void {
    const { segments, hashed, instance, store, isFresh } = this.#options;
    this.#segment++;
    this.#booksWritten = new Set();
    this.#written = new Set();
    const head: HeaderLine = {
      sluice: "recording",
      version: FORMAT_VERSION,
      instance,
      segment: this.#segment,
      at: Date.now(),
      store,
      fresh: isFresh && this.#segment === 1,
      hashed: [...hashed.names],
    };
    segments.begin(JSON.stringify(head));
    this.#writeRules(this.#rules.rules, this.#rules.version);
  }

  #writeRules(rules: readonly Rule[], version: number, isBook = false): void {
    const { segments, hashed } = this.#options;
    if (!isBook) this.#written.add(version);
    this.#write({ rules: version, count: rules.length, ...(isBook && { book: true as const }) });
    segments.addEach(rules, (rule) => JSON.stringify({ rule: hashed.rule(rule) }));
  }

  #write(line: RecordingLine): void {
    this.#options.segments.add(JSON.stringify(line));
  }
}

function namesOf({ places }: LeaseRequest): string[] {
  return [...new Set(places.map(({ entryId }) => entryId))];
}
