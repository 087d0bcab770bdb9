/**
 * A `fetch` for callers of rate-limited servers: it stays below the quota that the server announces, and if it is refused anyway, it waits
 * as long as the server asks, with jitter, and retries. It gives up at a deadline or when the caller's AbortSignal aborts.
 *
 *   const fetch = createFetch({ deadlineMs: 10_000 });
 *
 * Against a server that sheds load (503) it drops requests itself and retries within a budget, and it passes on its class and its deadline.
 *
 * In: what `fetch` takes. Out: what `fetch` returns; a refusal that is not worth waiting for is returned as it came, never thrown.
 */
import { Pacer } from "./pacer.js";
import { type QuotaSignal, readQuotas, readRetryAfterMs } from "./rate-limit-signals.js";
import { RetryBudget } from "./retry-budget.js";
import { Throttle } from "./throttle.js";

export interface FetchOptions {
  /** The underlying `fetch`. Default: the global one. */
  fetch?: typeof fetch;
  /** How long a call may take including all waits, up to the response's headers. Default 60 000. */
  deadlineMs?: number;
  /** How often a refused request is retried. Default 5. */
  maxRetries?: number;
  /** Each wait grows by a random part of this fraction, so that many callers do not come back at once. Default 0.1. */
  jitter?: number;
  /** Whether to wait before requests that would exceed the announced quota. Default true. */
  pace?: boolean;
  /** Requests with the same key share a quota. Default: the origin of the URL. */
  keyOf?: (url: URL) => string;
  /**
   * Whether to drop requests locally while the server sheds most of them: such a call resolves at once to a 503 that was never sent, with
   * `x-sluice-throttled: client`. By key and class. Default true.
   */
  throttle?: boolean;
  /** Retries after a 503 are at most this fraction of the requests. Default 0.1. */
  retryBudget?: number;
  /** The class of these requests, sent in `criticalityHeader` unless a request names its own. Default: none is sent. */
  criticality?: string;
  /** Default `x-criticality`. */
  criticalityHeader?: string;
  /** Sends the milliseconds left until the deadline in this header, such as `x-deadline-ms`. Default: not sent. */
  deadlineHeader?: string;
}

/** What is known about a server, by key; about one of its classes, by key and class. */
interface Server {
  readonly pacer: Pacer;
  readonly retries: RetryBudget;
  readonly throttles: Map<string, Throttle>;
}

/** How many keys are remembered; the least recently used is forgotten first (LRU). */
const MOST_KEYS = 1_000;
/** Classes of one server that are throttled separately; later ones share one throttle. */
const MOST_CLASSES = 16;
/** Node fires a timer with a longer delay after one millisecond. */
const LONGEST_TIMER_MS = 2_147_483_647;
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 30_000;
const LEAST_JITTER_MS = 50;
/** RFC 9110, section 9.2.2. After a 503 it is unknown whether the request was carried out; after a 429 it was not. */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]);

type FetchInput = Parameters<typeof fetch>[0];
type FetchInit = Parameters<typeof fetch>[1];

export function createFetch(options: FetchOptions = {}): typeof fetch {
  const { deadlineMs = 60_000, maxRetries = 5, jitter = 0.1, pace = true, keyOf = (url) => url.origin } = options;
  const { throttle: throttles = true, retryBudget = 0.1 } = options;
  const servers = new Map<string, Server>();

  return async (input: FetchInput, init?: FetchInit): Promise<Response> => {
    const deadlineAtMs = Date.now() + deadlineMs;
    const call = new Call({ send: options.fetch ?? fetch, input, init, deadlineAtMs, headers: options });
    const server = serverOf(servers, keyOf(call.url), retryBudget);
    const { pacer } = server;
    const throttle = throttles ? throttleOf(server.throttles, call.criticality) : undefined;
    if (throttle?.drops(Date.now(), Math.random())) return droppedHere();
    server.retries.requested();
    for (let attempt = 0; ; attempt++) {
      for (let waitMs = pace ? pacer.waitMs(Date.now()) : 0; waitMs > 0; waitMs = pacer.waitMs(Date.now())) {
        await call.wait(jittered(waitMs, jitter));
      }
      const { response, signals } = await call.attempt(pacer, throttle);
      const waitMs =
        attempt < maxRetries ? retryWaitMs({ response, signals, attempt, method: call.method }) : undefined;
      if (waitMs === undefined || !call.canRepeat) return response;
      const pauseMs = jittered(waitMs, jitter);
      if (!call.hasTimeFor(pauseMs) || (response.status === 503 && !server.retries.take())) return response;
      await response.body?.cancel();
      await call.wait(pauseMs);
    }
  };
}

const CRITICALITY_HEADER = "x-criticality";

type HeaderOptions = Pick<FetchOptions, "criticality" | "criticalityHeader" | "deadlineHeader">;

interface CallOptions {
  readonly send: typeof fetch;
  readonly input: FetchInput;
  readonly init: FetchInit;
  readonly deadlineAtMs: number;
  readonly headers: HeaderOptions;
}

/** One call by the caller, over all its attempts. */
class Call {
  readonly url: URL;
  readonly method: string;
  /** A body that is a stream is consumed by the first attempt. */
  readonly canRepeat: boolean;
  readonly #send: typeof fetch;
  readonly #input: FetchInput;
  readonly #init: FetchInit;
  readonly #signal: AbortSignal | undefined;
  readonly #deadlineAtMs: number;
  /** The class named by the request or the options; "" for none. */
  readonly criticality: string;
  readonly #options: HeaderOptions;

  constructor(call: CallOptions) {
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
    this.#options = call.headers;
    const { criticality = "", criticalityHeader = CRITICALITY_HEADER } = call.headers;
    this.criticality = this.#ownHeaders().get(criticalityHeader) ?? criticality;
  }

  #ownHeaders(): Headers {
    const request = this.#input instanceof Request ? this.#input : undefined;
    return new Headers(this.#init?.headers ?? request?.headers);
  }

  /** Undefined if nothing is added: the caller's own headers are sent as they are. */
  #headers(): Headers | undefined {
    const { criticalityHeader = CRITICALITY_HEADER, deadlineHeader } = this.#options;
    if (this.criticality === "" && deadlineHeader === undefined) return undefined;
    const headers = this.#ownHeaders();
    if (this.criticality !== "") headers.set(criticalityHeader, this.criticality);
    if (deadlineHeader !== undefined && Number.isFinite(this.#deadlineAtMs)) {
      headers.set(deadlineHeader, String(Math.max(0, Math.round(this.#deadlineAtMs - Date.now()))));
    }
    return headers;
  }

  hasTimeFor(waitMs: number): boolean {
    return Date.now() + waitMs < this.#deadlineAtMs;
  }

  /** Throws if the caller gave up, or if there is no time to wait. */
  async wait(ms: number): Promise<void> {
    this.#signal?.throwIfAborted();
    if (!this.hasTimeFor(ms))
      throw tooLate(`the quota allows the next request in ${Math.ceil(ms)} ms, after the deadline`);
    await new Promise<void>((resolve, reject) => {
      const abort = (): void => {
        clearTimeout(timer);
        reject(this.#signal!.reason as Error);
      };
      const timer = setTimeout(
        () => {
          this.#signal?.removeEventListener("abort", abort);
          resolve();
        },
        Math.min(ms, LONGEST_TIMER_MS),
      );
      this.#signal?.addEventListener("abort", abort, { once: true });
    });
  }

  async attempt(
    pacer: Pacer,
    throttle: Throttle | undefined,
  ): Promise<{ response: Response; signals: readonly QuotaSignal[] }> {
    const deadline = new AbortController();
    const leftMs = Math.min(Math.max(0, this.#deadlineAtMs - Date.now()), LONGEST_TIMER_MS);
    const timer = setTimeout(() => deadline.abort(tooLate("no response by the deadline")), leftMs);
    const signal = this.#signal === undefined ? deadline.signal : AbortSignal.any([this.#signal, deadline.signal]);
    // A clone, because a Request's body can be sent only once.
    const input = this.#input instanceof Request ? this.#input.clone() : this.#input;
    pacer.started();
    let signals: readonly QuotaSignal[] = [];
    let counted = true;
    let wasAccepted = false;
    try {
      const headers = this.#headers();
      const response = await this.#send(input, { ...this.#init, ...(headers && { headers }), signal });
      signals = readQuotas(response.headers, Date.now());
      counted = response.status !== 429;
      wasAccepted = response.status !== 503;
      return { response, signals };
    } finally {
      pacer.ended({ nowMs: Date.now(), signals, counted });
      // A caller that gave up says nothing about the server.
      if (!this.#signal?.aborted) throttle?.ended(Date.now(), wasAccepted);
      // The deadline applies to the headers; how long the body takes is up to the caller.
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

/** How long to wait before sending the request again; undefined if it must not be sent again. */
function retryWaitMs({ response, signals, attempt, method }: Refused): number | undefined {
  const { status, headers } = response;
  const toldMs = readRetryAfterMs(headers, Date.now());
  if (status === 503) return IDEMPOTENT.has(method) ? toldMs : undefined;
  if (status !== 429) return undefined;
  if (toldMs !== undefined) return toldMs;
  // A server that explains its refusal without a time means that waiting does not help.
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

function serverOf(servers: Map<string, Server>, key: string, retryBudget: number): Server {
  const server = servers.get(key) ?? {
    pacer: new Pacer(),
    retries: new RetryBudget(retryBudget),
    throttles: new Map(),
  };
  servers.delete(key);
  servers.set(key, server);
  if (servers.size > MOST_KEYS) servers.delete(servers.keys().next().value!);
  return server;
}

function throttleOf(throttles: Map<string, Throttle>, criticality: string): Throttle {
  const name = throttles.has(criticality) || throttles.size < MOST_CLASSES ? criticality : "(other)";
  const throttle = throttles.get(name) ?? new Throttle();
  throttles.set(name, throttle);
  return throttle;
}

/** The answer that the server would most likely have given. */
function droppedHere(): Response {
  const problem = {
    type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
    title: "Request cannot be satisfied due to temporary server capacity constraints",
    status: 503,
    detail: "The server sheds most requests of this class; the client did not send this one.",
  };
  const headers = { "content-type": "application/problem+json", "retry-after": "1", "x-sluice-throttled": "client" };
  return new Response(JSON.stringify(problem), { status: 503, headers });
}

function isStream(body: unknown): boolean {
  return typeof body === "object" && body !== null && ("getReader" in body || Symbol.asyncIterator in body);
}

/** The same error as AbortSignal.timeout. */
function tooLate(message: string): DOMException {
  return new DOMException(message, "TimeoutError");
}
