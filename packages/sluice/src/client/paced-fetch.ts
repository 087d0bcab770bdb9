/**
 * A `fetch` for callers of rate-limited servers: it keeps below the quota that the server states, and when it is refused all the same it
 * waits as long as the server asks, with jitter, and retries. It gives up by a deadline or the caller's AbortSignal.
 *
 *   const fetch = createFetch({ deadlineMs: 10_000 });
 *
 * In: what `fetch` takes. Out: what `fetch` gives; a refusal that is not worth waiting for is returned as it came, never thrown.
 */
import { Pacer } from "./pacer.js";
import { type QuotaSignal, readQuotas, readRetryAfterMs } from "./rate-limit-signals.js";

export interface FetchOptions {
  /** The `fetch` underneath. Default: the global one. */
  fetch?: typeof fetch;
  /** How long a call may take with all its waits, up to the response's headers. Default 60 000. */
  deadlineMs?: number;
  /** How often a refused request is sent again. Default 5. */
  maxRetries?: number;
  /** Each wait grows by a random part of this share, so that many callers do not come back at once. Default 0.1. */
  jitter?: number;
  /** Whether to wait before requests that would exceed the stated quota. Default true. */
  pace?: boolean;
  /** Requests with the same key share a quota. Default: the origin of the URL. */
  keyOf?: (url: URL) => string;
}

/** Quotas of this many origins are remembered; the one longest unused is forgotten first. */
const MOST_KEYS = 1_000;
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 30_000;
const LEAST_JITTER_MS = 50;
/** RFC 9110, section 9.2.2. After a 503 it is not known whether the request was carried out; after a 429 it was not. */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]);

type FetchInput = Parameters<typeof fetch>[0];
type FetchInit = Parameters<typeof fetch>[1];

export function createFetch(options: FetchOptions = {}): typeof fetch {
  const { deadlineMs = 60_000, maxRetries = 5, jitter = 0.1, pace = true, keyOf = (url) => url.origin } = options;
  const pacers = new Map<string, Pacer>();

  return async (input: FetchInput, init?: FetchInit): Promise<Response> => {
    const call = new Call({ send: options.fetch ?? fetch, input, init, deadlineAtMs: Date.now() + deadlineMs });
    const pacer = pacerOf(pacers, keyOf(call.url));
    for (let attempt = 0; ; attempt++) {
      for (let waitMs = pace ? pacer.waitMs(Date.now()) : 0; waitMs > 0; waitMs = pacer.waitMs(Date.now())) {
        await call.wait(jittered(waitMs, jitter));
      }
      const { response, signals } = await call.attempt(pacer);
      const waitMs =
        attempt < maxRetries ? retryWaitMs({ response, signals, attempt, method: call.method }) : undefined;
      if (waitMs === undefined || !call.canRepeat) return response;
      const pauseMs = jittered(waitMs, jitter);
      if (!call.hasTimeFor(pauseMs)) return response;
      await response.body?.cancel();
      await call.wait(pauseMs);
    }
  };
}

/** One call of the caller's, over all its attempts. */
class Call {
  readonly url: URL;
  readonly method: string;
  /** A body that is a stream is gone after the first attempt. */
  readonly canRepeat: boolean;
  readonly #send: typeof fetch;
  readonly #input: FetchInput;
  readonly #init: FetchInit;
  readonly #signal: AbortSignal | undefined;
  readonly #deadlineAtMs: number;

  constructor(call: { send: typeof fetch; input: FetchInput; init: FetchInit; deadlineAtMs: number }) {
    const { input, init } = call;
    const request = input instanceof Request ? input : undefined;
    this.url = new URL(request?.url ?? String(input));
    this.method = (init?.method ?? request?.method ?? "GET").toUpperCase();
    this.canRepeat = !isStream(init?.body);
    this.#send = call.send;
    this.#input = input;
    this.#init = init;
    this.#signal = init?.signal ?? request?.signal ?? undefined;
    this.#deadlineAtMs = call.deadlineAtMs;
  }

  hasTimeFor(waitMs: number): boolean {
    return Date.now() + waitMs < this.#deadlineAtMs;
  }

  /** Throws where the caller gave up, or where there is no time to wait. */
  async wait(ms: number): Promise<void> {
    this.#signal?.throwIfAborted();
    if (!this.hasTimeFor(ms))
      throw tooLate(`the quota allows the next request in ${Math.ceil(ms)} ms, after the deadline`);
    await new Promise<void>((resolve, reject) => {
      const abort = (): void => {
        clearTimeout(timer);
        reject(this.#signal!.reason as Error);
      };
      const timer = setTimeout(() => {
        this.#signal?.removeEventListener("abort", abort);
        resolve();
      }, ms);
      this.#signal?.addEventListener("abort", abort, { once: true });
    });
  }

  async attempt(pacer: Pacer): Promise<{ response: Response; signals: readonly QuotaSignal[] }> {
    const deadline = new AbortController();
    const leftMs = Math.max(0, this.#deadlineAtMs - Date.now());
    const timer = setTimeout(() => deadline.abort(tooLate("no response by the deadline")), leftMs);
    const signal = this.#signal === undefined ? deadline.signal : AbortSignal.any([this.#signal, deadline.signal]);
    // A clone, because a Request's body can be sent once.
    const input = this.#input instanceof Request ? this.#input.clone() : this.#input;
    pacer.started();
    let signals: readonly QuotaSignal[] = [];
    let counted = true;
    try {
      const response = await this.#send(input, { ...this.#init, signal });
      signals = readQuotas(response.headers, Date.now());
      counted = response.status !== 429;
      return { response, signals };
    } finally {
      pacer.ended({ nowMs: Date.now(), signals, counted });
      // The deadline is for the answer; how long its body takes is the caller's business.
      clearTimeout(timer);
    }
  }
}

interface Refused {
  readonly response: Response;
  readonly signals: readonly QuotaSignal[];
  readonly attempt: number;
  readonly method: string;
}

/** How long to wait before sending the request again; undefined where it is not to be sent again. */
function retryWaitMs({ response, signals, attempt, method }: Refused): number | undefined {
  const { status, headers } = response;
  const toldMs = readRetryAfterMs(headers, Date.now());
  if (status === 503) return IDEMPOTENT.has(method) ? toldMs : undefined;
  if (status !== 429) return undefined;
  if (toldMs !== undefined) return toldMs;
  // A server that explains its refusal and names no time means that no wait helps.
  if (headers.get("content-type")?.startsWith("application/problem+json")) return undefined;
  const resets = signals.flatMap(({ remaining, resetAfterMs }) =>
    remaining === 0 && resetAfterMs ? [resetAfterMs] : [],
  );
  return resets.length > 0 ? Math.max(...resets) : Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempt);
}

/** Only ever later: a client that comes early is refused twice. */
function jittered(ms: number, jitter: number): number {
  return ms + Math.random() * Math.max(ms * jitter, LEAST_JITTER_MS);
}

function pacerOf(pacers: Map<string, Pacer>, key: string): Pacer {
  const pacer = pacers.get(key) ?? new Pacer();
  pacers.delete(key);
  pacers.set(key, pacer);
  if (pacers.size > MOST_KEYS) pacers.delete(pacers.keys().next().value!);
  return pacer;
}

function isStream(body: unknown): boolean {
  return typeof body === "object" && body !== null && ("getReader" in body || Symbol.asyncIterator in body);
}

/** As AbortSignal.timeout has it. */
function tooLate(message: string): DOMException {
  return new DOMException(message, "TimeoutError");
}
