/**
 * The options of a Redis store, their defaults, and their validation, which happens before a connection is opened.
 */
import { SluiceError } from "../../errors.js";
import { isKeyPrefix, KEY_PREFIX_EXPECTED } from "../../key-prefix.js";
import type { TlsOptions } from "./client.js";

export interface RedisStoreOptions {
  /** How long a call may take before the rule's failure policy answers. Default 50. */
  deadlineMs?: number;
  /** Consecutive failures after which the circuit breaker opens. Default 3. */
  breakerFailures?: number;
  /** How often a store that does not answer is probed. Default 500. */
  breakerIntervalMs?: number;
  /** Whether refusals with a known end are cached in this process until then. Default true. */
  rememberRefusals?: boolean;
  /**
   * Prepended to every key: stores with different prefixes share no counter, lease or report on one Redis. Up to 64 printable characters
   * without spaces, `{ } * ? [ ] \\`; `shop:` makes `shop:sluice:1:…`. Default "".
   */
  prefix?: string;
  /** For a rediss URL: a private certificate authority (`ca`), a client certificate (`cert`, `key`). */
  tls?: TlsOptions;
}

interface CheckedStoreOptions {
  readonly prefix: string;
  readonly deadlineMs: number;
  readonly breakerFailures: number;
  readonly breakerIntervalMs: number;
  readonly rememberRefusals: boolean;
}

const numbers = {
  deadlineMs: { byDefault: 50, least: 1, most: 60_000, whole: false },
  breakerFailures: { byDefault: 3, least: 1, most: 1_000, whole: true },
  breakerIntervalMs: { byDefault: 500, least: 1, most: 60_000, whole: false },
} as const;
const others = ["rememberRefusals", "prefix", "tls"];

export function checkedStoreOptions(options: RedisStoreOptions): CheckedStoreOptions {
  if (typeof options !== "object" || options === null) throw refused("options", "an object", options);
  for (const name of Object.keys(options)) {
    if (name in numbers || others.includes(name)) continue;
    throw refused(name, `one of ${[...Object.keys(numbers), ...others].join(", ")}`, name);
  }
  const { rememberRefusals = true, prefix = "", tls } = options;
  if (typeof rememberRefusals !== "boolean") throw refused("rememberRefusals", "true or false", rememberRefusals);
  if (!isKeyPrefix(prefix)) throw refused("prefix", KEY_PREFIX_EXPECTED, prefix);
  if (tls !== undefined && (typeof tls !== "object" || tls === null))
    throw refused("tls", "an object such as { ca }", tls);
  return {
    deadlineMs: numberOf("deadlineMs", options.deadlineMs),
    breakerFailures: numberOf("breakerFailures", options.breakerFailures),
    breakerIntervalMs: numberOf("breakerIntervalMs", options.breakerIntervalMs),
    rememberRefusals,
    prefix,
  };
}

function numberOf(name: keyof typeof numbers, given: unknown): number {
  const { byDefault, least, most, whole } = numbers[name];
  if (given === undefined) return byDefault;
  const fits = typeof given === "number" && given >= least && given <= most && (!whole || Number.isInteger(given));
  if (fits) return given;
  throw refused(name, `a ${whole ? "whole " : ""}number from ${least} to ${most}`, given);
}

function refused(name: string, expected: string, given: unknown): SluiceError {
  return new SluiceError("invalid-setting", `redisStore: ${name}: expected ${expected}, got ${String(given)}`);
}
