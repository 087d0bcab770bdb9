/**
 * Encodes the steps of a region's fetch as KEYS and ARGV of fetch-home.lua, and decodes the replies. Pure.
 */
import type { PoolAsked, PoolFill, PoolNumbers } from "../../algorithms/pool.js";
import { grantsKey } from "../../keys.js";
import { numbersNamed } from "./script-reply.js";

/** In the order of pool.lua. */
const fields: readonly (keyof PoolNumbers)[] = [
  "units",
  "unitsEndMs",
  "used",
  "low",
  "renewAtMs",
  "lastMs",
  "arrived",
  "fetchingUntilMs",
  "refusedUntilMs",
  "refusedCost",
  "retryAtMs",
  "resetAtMs",
  "seq",
  "name",
  "told",
  "askedAtMs",
  "rate",
  "share",
];

export function poolKeys(key: string): string[] {
  return [key, grantsKey(key)];
}

export function encodeFill(fill: PoolFill): number[] {
  const { seq, isAnswered, units, kept, unitsEndMs, lowPart, renewAtMs } = fill;
  const { refusedForMs, refusedCost, retryAfterMs, resetAfterMs, rate, share } = fill;
  const amounts = [units, kept, unitsEndMs, lowPart, renewAtMs];
  return [seq, isAnswered ? 1 : 0, ...amounts, refusedForMs, refusedCost, retryAfterMs, resetAfterMs, rate, share];
}

export function decodePool(reply: unknown): PoolAsked {
  const names = ["now_ms", "is_mine", "arrived", "elapsed_ms", "held", ...fields];
  const [nowMs, isMine, arrived, elapsedMs, held, ...values] = numbersNamed(reply, ...names);
  const numbers = Object.fromEntries(fields.map((name, i) => [name, values[i]!])) as unknown as PoolNumbers;
  return { nowMs: nowMs!, isMine: isMine === 1, arrived: arrived!, elapsedMs: elapsedMs!, held: held!, numbers };
}
