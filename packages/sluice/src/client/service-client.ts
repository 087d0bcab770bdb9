/// <reference lib="esnext.disposable" preserve="true" />
/**
 * A typed client of the service's data plane: each call is one POST to `/v1/...`.
 *
 *   const sluice = createClient({ server: "http://127.0.0.1:8080" });
 *   const decision = await sluice.check({ user: "42" });
 *
 * A refusal is a value. Errors mean that the service could not be asked, or rejected the request.
 */
import type { DecisionSummary, Settlement } from "../decision.js";
import type { Attributes } from "../rules/rule.js";

export interface ClientOptions {
  /** Where the service listens, such as `http://127.0.0.1:8080`. */
  server: string | URL;
  /** The service's `--api-token`, if it has one. */
  token?: string;
  /** How long a call may take. Default 2 000. */
  timeoutMs?: number;
  /** The underlying `fetch`. Default: the global one. */
  fetch?: typeof fetch;
}

export interface RemoteCheckOptions {
  /** Overrides the cost that the rules define; 0 only looks. */
  cost?: number;
  /** Idempotency key: the same id within a minute returns the same decision and charges nothing. */
  id?: string;
}

export interface RemoteRequest extends RemoteCheckOptions {
  attributes: Attributes;
}

/** A place held under a concurrency rule. */
export interface RemoteLease extends AsyncDisposable {
  readonly id: string;
  readonly expiresAfterMs: number;
  release(outcome?: string): Promise<boolean>;
  renew(): Promise<boolean>;
}

export interface RemoteDecision extends DecisionSummary {
  readonly lease?: RemoteLease;
}

/** The outcome of one rule for a request, and why. */
export interface RemoteExplainedRule {
  readonly rule: string;
  readonly matched: boolean;
  readonly why: string;
  readonly key?: string;
  readonly override?: number;
  readonly variant?: string;
  readonly state?: Readonly<Record<string, number>>;
  readonly nextAllowedAt?: string;
  /** The attribute that sets the cost under the rule, whatever cost the request itself names. */
  readonly costAttribute?: string;
}

export interface RemoteExplanation extends DecisionSummary {
  readonly decision: RemoteDecision;
  /** All rules that apply, and the first hundred of the others. */
  readonly rules: readonly RemoteExplainedRule[];
  /** How many more rules do not apply; absent if none. */
  readonly more?: number;
}

/** The service answered with an error. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  /** Stable; `docs/errors.md` lists them. `unreadable-answer` if what answered was not the service. */
  readonly code: string;
  readonly status: number;

  constructor(error: { code: string; status: number; detail: string }) {
    super(error.detail);
    this.code = error.code;
    this.status = error.status;
  }
}

/** The service's own limit. */
const MOST_PER_BATCH = 1_000;

export class ServiceClient {
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch | undefined;

  constructor({ server, token, timeoutMs = 2_000, fetch }: ClientOptions) {
    // A path is kept (a service behind /limits) and gets a trailing slash, because otherwise relative URLs would replace its last segment.
    this.#base = new URL(server);
    if (!this.#base.pathname.endsWith("/")) this.#base.pathname += "/";
    this.#headers = {
      "content-type": "application/json",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    this.#timeoutMs = timeoutMs;
    this.#fetch = fetch;
  }

  /** Decides and charges. */
  async check(attributes: Attributes, options: RemoteCheckOptions = {}): Promise<RemoteDecision> {
    return this.#decision(await this.#post<RemoteDecision>("check", { attributes, ...options }));
  }

  /** Charges a cost that has already been incurred: never refused, counters may pass their limits. */
  charge(attributes: Attributes, options: RemoteCheckOptions = {}): Promise<RemoteDecision> {
    return this.#post("charge", { attributes, ...options });
  }

  /**
   * Decisions in the order of the requests. If there are more than the service accepts at once, they are sent in several calls, one after
   * the other. Rejects with the mistake of the first invalid request; the others were decided anyway.
   */
  async checkBatch(requests: readonly RemoteRequest[]): Promise<RemoteDecision[]> {
    const decisions: RemoteDecision[] = [];
    for (let first = 0; first < requests.length; first += MOST_PER_BATCH) {
      const part = requests.slice(first, first + MOST_PER_BATCH);
      const answer = await this.#post<{ decisions: (RemoteDecision & Partial<ErrorBody>)[] }>("check/batch", {
        requests: part,
      });
      const at = answer.decisions.findIndex(({ code }) => code !== undefined);
      if (at >= 0) {
        const { code = "", status = 400, detail = "" } = answer.decisions[at]!;
        throw new ServiceError({ code, status, detail: `requests[${first + at}]: ${detail}` });
      }
      decisions.push(...answer.decisions.map((decision) => this.#decision(decision)));
    }
    return decisions;
  }

  /** The decision that `check` would make now, without charging. */
  peek(attributes: Attributes, options: RemoteCheckOptions = {}): Promise<RemoteDecision> {
    return this.#post("peek", { attributes, ...options });
  }

  /** A peek that also reports which rules were considered, and why each applies or not. */
  explain(attributes: Attributes, options: RemoteCheckOptions = {}): Promise<RemoteExplanation> {
    return this.#post("explain", { attributes, ...options });
  }

  /** Frees a lease. False if it was no longer held; releasing twice is harmless. */
  async release(lease: string | { readonly id: string }, outcome?: string): Promise<boolean> {
    const answer = await this.#post<{ released: boolean }>("release", {
      lease: idOf(lease),
      ...(outcome !== undefined && { outcome }),
    });
    return answer.released;
  }

  /** Holds a lease for another term. False if it was lost: stop the work, because someone else may have the place. */
  async renew(lease: string | { readonly id: string }): Promise<boolean> {
    return (await this.#post<{ renewed: boolean }>("renew", { lease: idOf(lease) })).renewed;
  }

  /** Charges what a reserved request really cost, by the cost attributes of its rules. Idempotent. */
  settle(reservation: string | { readonly id: string }, attributes: Attributes): Promise<Settlement> {
    return this.#post("settle", { reservation: idOf(reservation), attributes });
  }

  /** Holds more for a reservation, up to these total costs, and renews its term. */
  extend(reservation: string | { readonly id: string }, attributes: Attributes): Promise<RemoteDecision> {
    return this.#post("extend", { reservation: idOf(reservation), attributes });
  }

  /** Settles a reservation at 0: the work was not done. */
  cancel(reservation: string | { readonly id: string }): Promise<Settlement> {
    return this.#post("cancel", { reservation: idOf(reservation) });
  }

  /** Gives back what the decision with this id charged, once. */
  async refund(id: string): Promise<boolean> {
    return (await this.#post<{ refunded: boolean }>("refund", { id })).refunded;
  }

  #decision(decision: RemoteDecision): RemoteDecision {
    const { lease } = decision;
    if (lease === undefined) return decision;
    const release = (outcome?: string): Promise<boolean> => this.release(lease, outcome);
    const held: RemoteLease = {
      id: lease.id,
      expiresAfterMs: lease.expiresAfterMs,
      release,
      renew: () => this.renew(lease),
      [Symbol.asyncDispose]: async () => void (await release()),
    };
    return { ...decision, lease: held };
  }

  async #post<T>(call: string, body: object): Promise<T> {
    const send = this.#fetch ?? fetch;
    const response = await send(new URL(`v1/${call}`, this.#base), {
      method: "POST",
      headers: this.#headers,
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    const answer = (await response.json().catch(() => undefined)) as (T & Partial<ErrorBody>) | undefined;
    if (response.ok && answer !== undefined) return answer;
    const code = answer?.code ?? "unreadable-answer";
    throw new ServiceError({
      code,
      status: response.status,
      detail: answer?.detail ?? `${call}: status ${response.status}`,
    });
  }
}

interface ErrorBody {
  readonly code: string;
  readonly status: number;
  readonly detail: string;
}

function idOf(named: string | { readonly id: string }): string {
  return typeof named === "string" ? named : named.id;
}

export function createClient(options: ClientOptions): ServiceClient {
  return new ServiceClient(options);
}
