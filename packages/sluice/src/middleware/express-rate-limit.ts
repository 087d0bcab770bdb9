/**
 * `sluice/express-rate-limit`: a Store for express-rate-limit, with exact rolling windows, in memory or on Redis.
 *
 *   rateLimit({ windowMs: 60_000, limit: 100, store: rollingStore({ store: redisStore(url) }) })
 *
 * Stores of express-rate-limit count hits and leave the decision to it. This one also knows the limit, so a refused hit is answered with
 * `limit + 1` and counts nothing: a client that keeps retrying is admitted as soon as its window allows. If `limit` is a function, it is
 * unknown here; then every hit counts, as with other stores.
 *
 * `decrement` names only a key, and express-rate-limit also calls it for hits that it refused (skipFailedRequests). The async context
 * identifies the hit, so that a refusal never gives back what another request was charged.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { ClientRateLimitInfo, Options, Store } from "express-rate-limit";
import { SluiceError } from "../errors.js";
import { warnOnce } from "../http/warn-once.js";
import { Decision } from "../limiter/decision.js";
import { createLimiter, type Limiter } from "../limiter/limiter.js";
import { formatDuration } from "../rules/duration.js";
import { DEFAULT_FAILURE_POLICY, type FailurePolicy } from "../rules/rule.js";
import type { Store as CounterStore } from "../store/store.js";
import { KeptDecisions } from "./kept-decisions.js";

export interface RollingStoreOptions {
  /** Where counters live. Default: the memory of this process. */
  store?: CounterStore;
  /**
   * Separates the counters of this limiter in a shared store. Default: made from the numbers (`express-rate-limit.100-per-1m`), so that the
   * processes of a fleet share them. Two limiters with equal numbers need different names.
   */
  prefix?: string;
  /**
   * The failure policy while the store is away. `local` (default) counts in this process, `allow` lets requests pass, `deny` rejects:
   * express-rate-limit then applies its own `passOnStoreError`.
   */
  onStoreFailure?: FailurePolicy;
}

const DEFAULT_PREFIX = "express-rate-limit";
/** Default prefixes used in shared stores by this process. */
const taken = new Set<string>();
/** It must be a valid rule id. */
const PREFIX = /^[a-z0-9][a-z0-9-_.]{0,63}$/;
/** The limit in force if the option is a function. */
const UNBOUNDED_LIMIT = 100_000;
/** How long a hit waits for `init`: long enough for an application's setup, not forever. */
const INIT_PATIENCE_MS = 1_000;

/** One `increment` and its outcome. */
interface Hit {
  readonly key: string;
  /** Absent for a refused hit, and after it was given back. */
  decision: Decision | undefined;
  isGivenBack: boolean;
}

interface Ready {
  readonly limiter: Limiter;
  readonly limit: number;
}

export class RollingStore implements Store {
  prefix: string;
  /** True if no other process shares the counters: express-rate-limit's validations use it. */
  readonly localKeys: boolean;
  readonly #options: RollingStoreOptions;
  #ready: Ready | undefined;
  #waiting: ((ready: Ready) => void)[] = [];
  /** What `decrement` can take back. */
  readonly #kept = new KeptDecisions();
  /** The hit of the current request; only if `decrement` will be called. */
  #hits: AsyncLocalStorage<Hit> | undefined;

  constructor(options: RollingStoreOptions = {}) {
    this.prefix = options.prefix ?? DEFAULT_PREFIX;
    // Throw here: express-rate-limit logs what `init` throws and carries on without it.
    if (!PREFIX.test(this.prefix)) {
      throw new SluiceError("invalid-setting", `prefix: expected ${PREFIX.source}, got ${JSON.stringify(this.prefix)}`);
    }
    this.localKeys = options.store === undefined;
    this.#options = options;
  }

  /** express-rate-limit calls this once, with its own options. Hits that came earlier are decided now. */
  init({ windowMs, limit, skipFailedRequests, skipSuccessfulRequests }: Options): void {
    const bounded = typeof limit === "number" && limit >= 1 ? Math.floor(limit) : UNBOUNDED_LIMIT;
    const window = formatDuration(Math.ceil(windowMs));
    if (this.#options.prefix === undefined) {
      this.prefix = `${DEFAULT_PREFIX}.${typeof limit === "number" ? limit : "any"}-per-${window}`;
      if (!this.localKeys) warnOfSharedPrefix(this.prefix);
    }
    if (skipFailedRequests || skipSuccessfulRequests) this.#hits = new AsyncLocalStorage();
    const { store, onStoreFailure = DEFAULT_FAILURE_POLICY } = this.#options;
    const limiter = createLimiter({
      rules: [
        {
          id: this.prefix,
          key: ["key"],
          algorithm: "rolling-window",
          limit: bounded,
          window,
          storage: "packed",
          onStoreFailure,
        },
      ],
      ...(store !== undefined && { store }),
    });
    this.#ready = { limiter, limit: bounded };
    for (const go of this.#waiting.splice(0)) go(this.#ready);
  }

  async increment(key: string): Promise<ClientRateLimitInfo> {
    const hit: Hit = { key, decision: undefined, isGivenBack: false };
    // Before the first await: the caller continues in this async context.
    this.#hits?.enterWith(hit);
    const { limiter, limit } = this.#ready ?? (await this.#initialised());
    const decision = await limiter.check({ key });
    if (decision.reason === "store-unavailable") {
      throw new SluiceError("store-unavailable", "the store did not answer, and onStoreFailure is deny");
    }
    if (decision.allowed) {
      hit.decision = decision;
      this.#kept.keep(key, decision);
    }
    return hitsOf(decision, limit);
  }

  async get(key: string): Promise<ClientRateLimitInfo | undefined> {
    const { limiter, limit } = this.#ready ?? (await this.#initialised());
    const decision = await limiter.peek({ key }, { cost: 0 });
    return decision.remaining === limit ? undefined : hitsOf(decision, limit);
  }

  async decrement(key: string): Promise<void> {
    const hit = this.#hits?.getStore();
    const { limiter } = this.#ready ?? (await this.#initialised());
    // Direct callers take back the latest admitted hit.
    const decision = hit?.key === key && !hit.isGivenBack ? this.#takeBack(hit) : this.#kept.takeLatest(key);
    if (decision !== undefined) await limiter.refund(decision);
  }

  #takeBack(hit: Hit): Decision | undefined {
    hit.isGivenBack = true;
    const { key, decision } = hit;
    return decision !== undefined && this.#kept.take(key, decision) ? decision : undefined;
  }

  async resetKey(key: string): Promise<void> {
    const { limiter } = this.#ready ?? (await this.#initialised());
    this.#kept.forget(key);
    await limiter.reset(this.prefix, { key });
  }

  async shutdown(): Promise<void> {
    await this.#ready?.limiter.close();
  }

  #initialised(): Promise<Ready> {
    return new Promise((resolve, reject) => {
      const patience = setTimeout(() => {
        reject(
          new SluiceError(
            "invalid-setting",
            "store: give it to express-rate-limit's rateLimit({ store }), which starts it",
          ),
        );
      }, INIT_PATIENCE_MS);
      this.#waiting.push((ready) => {
        clearTimeout(patience);
        resolve(ready);
      });
    });
  }
}

function warnOfSharedPrefix(prefix: string): void {
  if (taken.has(prefix)) {
    warnOnce(
      "SLUICE_SHARED_PREFIX",
      `two limiters in a shared store have the prefix "${prefix}", made of equal numbers: they count together. Give each rollingStore a prefix.`,
      prefix,
    );
  }
  taken.add(prefix);
}

/** A hit counts at least 1: express-rate-limit requires it, and an answer of the failure policy has counted nothing. */
function hitsOf(decision: Decision, limit: number): ClientRateLimitInfo {
  const { allowed, remaining = limit, retryAfterMs, resetAfterMs } = decision;
  const { nowMs } = Decision.originOf(decision);
  return {
    totalHits: allowed ? Math.max(1, limit - remaining) : limit + 1,
    // express-rate-limit computes its Retry-After from this: for a refusal, the time at which the next hit can pass.
    resetTime: new Date(nowMs + (allowed ? resetAfterMs : retryAfterMs)),
  };
}

export function rollingStore(options?: RollingStoreOptions): RollingStore {
  return new RollingStore(options);
}
