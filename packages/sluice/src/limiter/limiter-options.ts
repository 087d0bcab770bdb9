/**
 * The options of a limiter, and their validation.
 */
import { SluiceError } from "../errors.js";
import { checkRegion } from "../regions/region-options.js";
import type { Rule } from "../rules/rule.js";
import type { Clock } from "../store/memory/memory-store-options.js";
import type { Store } from "../store/store.js";

export interface LimiterOptions {
  rules: readonly Rule[];
  /** Where counters live. Default: the memory of this process. */
  store?: Store;
  /** The store that all regions share, where rules with `scope: global` count. */
  globalStore?: Store;
  /** The name of this region; needs `globalStore`. */
  region?: string;
  /**
   * The version of `rules`. Default 1; `setRules` and `swapRules` increment it. If rules are deployed with the program, pass a number that
   * grows: a retry by id that meets different rules under the same version is taken for another limiter's request, and rejects.
   */
  rulesVersion?: number;
  /** For tests (`sluice/testing`): the memory store's clock. */
  clock?: Clock;
  /**
   * How many instances share the limits: under `onStoreFailure: local` each admits its share. Default: the instances that share the store
   * are counted while it answers, and the last count is kept when it does not; 1 if it never answered.
   */
  instances?: number;
  /** How many requests in this process may wait at once for their turn under rules with `maxWait`; more are refused. Default 10 000. */
  maxWaiting?: number;
}

export const DEFAULT_MAX_WAITING = 10_000;

const knownOptions: readonly string[] = [
  "rules",
  "store",
  "globalStore",
  "region",
  "rulesVersion",
  "clock",
  "instances",
  "maxWaiting",
];

/** Catches common mistakes of plain JavaScript callers: a URL instead of a store, a misspelled option. */
export function checkOptions(options: LimiterOptions): void {
  const refused = (why: string): SluiceError => new SluiceError("invalid-setting", why);
  if (typeof options !== "object" || options === null) throw refused("createLimiter: expected { rules, store? }");
  for (const name of Object.keys(options)) {
    if (!knownOptions.includes(name)) throw refused(`${name}: unknown option; known are ${knownOptions.join(", ")}`);
  }
  const { store, globalStore } = options;
  for (const [name, given] of Object.entries({ store, globalStore })) {
    if (given === undefined || typeof (given as Partial<Store> | null)?.decide === "function") continue;
    throw refused(
      `${name}: expected a store such as redisStore("redis://127.0.0.1:6379") of "sluice/redis", or memoryStore()`,
    );
  }
  checkRegion(options, refused);
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
