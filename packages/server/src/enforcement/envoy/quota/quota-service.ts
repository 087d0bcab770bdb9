/**
 * `StreamRateLimitQuotas` (RLQS): the streams of all Envoys, within bounds.
 *
 * The life of a stream, and the exit of each step:
 *   1. a client opens it, with API token or certificate            UNAUTHENTICATED, PERMISSION_DENIED; too many: RESOURCE_EXHAUSTED
 *   2. it reports buckets; each gets an assignment                 malformed report: INVALID_ARGUMENT; store down: no assignment
 *   3. between reports, assignments that expire are renewed        slow reader: no renewal, its assignments expire
 *   4. when the rules change, every bucket gets a new assignment
 *   5. silence, or this service's shutdown, ends it                Envoy opens a new stream with its next report
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { type Limiter, SluiceError } from "sluice";
import { type OutsideUnits, outsideUnits } from "sluice/internal";
import { grpcCodes } from "../../../grpc/statuses.js";
import type { Log } from "../../../log.js";
import { isStarterRule } from "../../../settings/starter-rules.js";
import { MALFORMED, type QuotaResponse, type UsageReports } from "./quota-messages.js";
import { bounds, QuotaStream, type StreamOutcome } from "./quota-stream.js";

export type QuotaCall = ServerDuplexStream<UsageReports | typeof MALFORMED, QuotaResponse>;

const streamBounds = { streams: 1_024, perConnection: 16 };
const RENEW_EVERY_MS = 250;
const FLUSH_WITHIN_MS = 250;
/** Assignments are renewed for this long after a report; after the longer time without one, the stream ends. */
const RENEW_WITHIN_MS = 20_000;
const SILENCE_MS = 180_000;
/** Rate limit for logging the same problem. */
const COMPLAIN_EVERY_MS = 60_000;

interface QuotaServiceOptions {
  readonly limiter: Limiter;
  readonly log: Log;
  readonly onOutcome: (outcome: StreamOutcome) => void;
  /** The attributes of a bucket's requests. */
  readonly attributesOf: QuotaStreamAttributes;
  readonly now?: () => number;
  /** Over all streams. */
  readonly mostBuckets?: number;
}

type QuotaStreamAttributes = ConstructorParameters<typeof QuotaStream>[0]["attributesOf"];
type QuotaStreamSend = ConstructorParameters<typeof QuotaStream>[0]["send"];

interface Open {
  readonly stream: QuotaStream;
  readonly call: QuotaCall;
  reportedMonotonicMs: number;
  isOver: boolean;
  /** Resolves when the last message has been flushed. */
  flushed: Promise<void>;
  /** Whether that did not happen in time: the client is a slow reader. */
  isStuck: boolean;
}

export class QuotaService {
  readonly #options: QuotaServiceOptions;
  readonly #now: () => number;
  /** Shared by all streams, so that charges of one key are serialised. */
  readonly #units: OutsideUnits;
  readonly #open = new Set<Open>();
  readonly #perConnection = new Map<string, number>();
  readonly #name = randomBytes(6).toString("base64url");
  readonly #complained = new Map<string, number>();
  readonly #onRules = (): void => {
    // Streams opened later start with the new rules anyway.
    if (this.#open.size > 0) this.#haveRulesChanged = true;
  };
  #holders = 0;
  #buckets = 0;
  #timer: NodeJS.Timeout | undefined;
  #isRenewing = false;
  #isClosed = false;
  /** Debounces changes in quick succession. */
  #haveRulesChanged = false;

  constructor(options: QuotaServiceOptions) {
    this.#options = options;
    this.#units = outsideUnits(options.limiter);
    this.#now = options.now ?? (() => performance.now());
    options.limiter.on("rules", this.#onRules);
  }

  get counts(): { streams: number; buckets: number } {
    return { streams: this.#open.size, buckets: this.#buckets };
  }

  /** Serves the stream of an authorised client. */
  serve(call: QuotaCall): void {
    if (this.#isClosed) {
      end(call, grpcCodes.unavailable, "this instance is closing");
      return;
    }
    const peer = call.getPeer();
    const ofPeer = this.#perConnection.get(peer) ?? 0;
    // A connection without a stream always gets one, whatever others hold; the number of connections is bounded elsewhere.
    const isFull = this.#open.size >= streamBounds.streams;
    const share = streamBounds.streams / (this.#perConnection.size + 1);
    if (ofPeer >= streamBounds.perConnection || (isFull && ofPeer >= share)) {
      end(call, grpcCodes.resourceExhausted, "too many streams; expected one for each domain of an Envoy");
      return;
    }
    const stream = this.#newStream((bucketAction) => this.#send(open, bucketAction));
    const open: Open = {
      stream,
      call,
      reportedMonotonicMs: this.#now(),
      isOver: false,
      flushed: Promise.resolve(),
      isStuck: false,
    };
    this.#open.add(open);
    this.#perConnection.set(peer, ofPeer + 1);
    this.#timer ??= setInterval(() => this.#tick(), RENEW_EVERY_MS).unref();
    call.once("cancelled", () => this.#over(open, peer));
    // Includes our own errors: grpc-js takes a stream's status from an error.
    call.once("error", () => this.#over(open, peer));
    call.once("end", () => {
      this.#over(open, peer);
      call.end();
    });
    this.#read(open);
  }

  #over(open: Open, peer: string): void {
    if (open.isOver) return;
    open.isOver = true;
    this.#open.delete(open);
    open.stream.close();
    const left = this.#perConnection.get(peer)! - 1;
    if (left === 0) this.#perConnection.delete(peer);
    else this.#perConnection.set(peer, left);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Ends all streams, so that Envoys reconnect elsewhere; their assignments stay usable until they expire. */
  endAll(): void {
    this.#isClosed = true;
    this.#options.limiter.off("rules", this.#onRules);
    for (const { call } of [...this.#open]) end(call, grpcCodes.unavailable, "this instance is closing");
  }

  #newStream(send: QuotaStreamSend): QuotaStream {
    const { limiter, onOutcome, attributesOf } = this.#options;
    return new QuotaStream({
      units: this.#units,
      isLeftOut: (id) => {
        const rule = limiter.findRule(id);
        return rule !== undefined && isStarterRule(rule);
      },
      newHolder: () => `${this.#name}q${(this.#holders++).toString(36)}`,
      now: this.#now,
      attributesOf,
      send,
      take: (size) => this.#take(size),
      giveBack: () => void this.#buckets--,
      onOutcome,
      onUnfit: (rule) =>
        this.#complain(
          `unfit ${rule}`,
          "a rule cannot be assigned to Envoys (RLQS): give it a prefetch of 3s or more",
          {
            rule,
          },
        ),
      onFailure: (error) =>
        this.#complain("failed", "quota buckets get no assignment; Envoy's own behaviour decides", {
          error: String(error),
        }),
    });
  }

  /** Every stream gets its fair share: when full, the stream with the most buckets loses those beyond its own. */
  #take(size: number): boolean {
    const { mostBuckets = bounds.buckets } = this.#options;
    const share = Math.floor(mostBuckets / this.#open.size);
    if (this.#buckets >= mostBuckets) {
      if (size >= share) return false;
      const largest = [...this.#open].reduce((most, open) => (open.stream.size > most.stream.size ? open : most));
      void this.#send(largest, largest.stream.shed(share));
    }
    this.#buckets++;
    return true;
  }

  #read(open: Open): void {
    const { call } = open;
    // One message at a time: grpc-js would buffer sixteen, of a megabyte each. Our own transport buffers none.
    const state = (call as unknown as { _readableState: { highWaterMark: number } })._readableState;
    state.highWaterMark = Math.min(1, state.highWaterMark);
    call.on("data", (message: UsageReports | typeof MALFORMED) => {
      call.pause();
      void this.#answer(open, message).then(() => call.resume());
    });
  }

  async #answer(open: Open, message: UsageReports | typeof MALFORMED): Promise<void> {
    if (open.isOver) return;
    open.reportedMonotonicMs = this.#now();
    try {
      if (message === MALFORMED) throw new SluiceError("invalid-request", "the message is no report of usage");
      await open.stream.report(message);
    } catch (error) {
      if (open.isOver) return;
      if (error instanceof SluiceError && error.code === "invalid-request") {
        end(open.call, grpcCodes.invalidArgument, error.message);
        return;
      }
      this.#options.log.error("StreamRateLimitQuotas failed", { error: String(error) });
      end(open.call, grpcCodes.internal, "Sluice failed; its log says why.");
    }
  }

  /**
   * Units must arrive soon after they were granted, as their TTL runs from then: nothing is sent behind a message that is still queued.
   * Envoy reads promptly; units that are not sent return with the next fetch, or expire.
   */
  async #send(open: Open, bucketAction: QuotaResponse["bucketAction"]): Promise<boolean> {
    if (bucketAction.length === 0) return true;
    const { call } = open;
    if (call.writableLength > 0 && !open.isStuck) {
      await Promise.race([open.flushed, sleep(FLUSH_WITHIN_MS, undefined, { ref: false })]);
      open.isStuck = call.writableLength > 0;
    }
    if (open.isOver || open.isStuck) return false;
    open.flushed = new Promise((resolve) => {
      call.write({ bucketAction }, () => {
        open.isStuck = false;
        resolve();
      });
    });
    return true;
  }

  #tick(): void {
    const nowMonotonicMs = this.#now();
    for (const { call, reportedMonotonicMs } of [...this.#open]) {
      if (reportedMonotonicMs < nowMonotonicMs - SILENCE_MS)
        end(call, grpcCodes.deadlineExceeded, `no report within ${SILENCE_MS / 1_000} s`);
    }
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    void this.#renew().finally(() => {
      this.#isRenewing = false;
    });
  }

  async #renew(): Promise<void> {
    const anew = this.#haveRulesChanged;
    this.#haveRulesChanged = false;
    const reportedMonotonicMs = this.#now() - RENEW_WITHIN_MS;
    for (const open of [...this.#open]) {
      const { stream, call } = open;
      if (open.reportedMonotonicMs < reportedMonotonicMs || call.writableLength > 0) continue;
      await (anew ? stream.renewAll() : stream.renewDue());
    }
  }

  #complain(name: string, message: string, about: Record<string, unknown>): void {
    const nowMonotonicMs = this.#now();
    if ((this.#complained.get(name) ?? Number.NEGATIVE_INFINITY) > nowMonotonicMs - COMPLAIN_EVERY_MS) return;
    if (this.#complained.size >= 1_000) this.#complained.clear();
    this.#complained.set(name, nowMonotonicMs);
    this.#options.log.warn(message, about);
  }
}

function end(call: QuotaCall, code: number, details: string): void {
  call.emit("error", Object.assign(new Error(details), { code, details }));
}
