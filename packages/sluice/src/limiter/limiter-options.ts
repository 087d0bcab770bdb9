/**
 * The options of a limiter, and their validation.
 */
import { SluiceError } from "../errors.js";
import type { Rule } from "../rules/rule.js";
import type { Clock } from "../store/memory/memory-store-options.js";
import type { Store } from "../store/store.js";

export interface LimiterOptions {
  rules: readonly Rule[];
  /** Where counters live. Default: this process's memory. */
  store?: Store;
  /** The version of `rules`. Default 1; `setRules` and `swapRules` count on. */
  rulesVersion?: number;
  /** For tests (`sluice/testing`): where the memory store's time comes from. */
  clock?: Clock;
  /**
   * How many instances share the limits: under `onStoreFailure: local` each admits its share. Default: those that share the store are
   * counted while it answers, and the last number holds when it does not; 1 if it never did.
   */
  instances?: number;
  /** How many requests may wait at once, in this process, for turns under rules with `maxWait`. Default 10 000; beyond it they are refused. */
  maxWaiting?: number;
}

export const DEFAULT_MAX_WAITING = 10_000;

const knownOptions: readonly string[] = ["rules", "store", "rulesVersion", "clock", "instances", "maxWaiting"];

/** Catches what a program in plain JavaScript gets wrong first: a URL for a store, a misspelled name. */
export function checkOptions(options: LimiterOptions): void {
  const refused = (why: string): SluiceError => new SluiceError("invalid-setting", why);
  if (typeof options !== "object" || options === null) throw refused("createLimiter: expected { rules, store? }");
  for (const name of Object.keys(options)) {
    if (!knownOptions.includes(name)) throw refused(`${name}: unknown option; known are ${knownOptions.join(", ")}`);
  }
  const { store } = options;
  if (store !== undefined && typeof (store as Partial<Store> | null)?.decide !== "function") {
    throw refused(
      'store: expected a store such as redisStore("redis://127.0.0.1:6379") of "sluice/redis", or memoryStore()',
    );
  }
  if (options.clock !== undefined && store !== undefined) {
    throw refused("clock: only the memory store takes one; leave out store or clock");
  }
  const { instances = 1 } = options;
  if (!Number.isSafeInteger(instances) || instances < 1) {
    throw refused(`instances: expected a whole number of at least 1, got ${String(instances)}`);
  }
  const { maxWaiting = DEFAULT_MAX_WAITING } = options;
  if (!Number.isSafeInteger(maxWaiting) || maxWaiting < 0) {
    throw refused(`maxWaiting: expected a whole number of at least 0, got ${String(maxWaiting)}`);
  }
}
