/**
 * What a rule with `scope: global` may contain: its units pass through a region, which must be able to hold them. In: the effective
 * numbers, and the rule as written. Out: mistakes, through `refuse`.
 */
import { describeValue } from "./describe-value.js";
import { parseDuration } from "./duration.js";
import { numberFieldsOf } from "./fields.js";
import type { AlgorithmName, NumberFields } from "./rule.js";

/** A shorter window would end before units could travel. */
const SHORTEST_MS = 1_000;

/** Fields that require the counter itself to decide every check. */
const atTheCounter: Readonly<Record<string, string>> = {
  minInterval: "units of a region keep no distance from each other",
  blockFor: "units of a region do not see a block",
  estimate: "a reservation is settled in the store that holds it",
  maxWait: "a turn is booked in the counter itself",
  adapt: "a region cannot tell when the limit has moved",
};

export function checkGlobal(
  numbers: NumberFields & { algorithm: AlgorithmName },
  rule: Readonly<Record<string, unknown>>,
  refuse: (concerned: readonly string[], message: string) => void,
): void {
  const { algorithm, window, refill, limit, burst } = numbers;
  // Units must be holdable in advance: the same algorithms as those of prefetch.
  if (!numberFieldsOf.get(algorithm)!.includes("prefetch")) {
    refuse(["scope", "algorithm"], `expected scope: region, got global: ${algorithm} has no units that could be held`);
    return;
  }
  for (const [name, why] of Object.entries(atTheCounter)) {
    const written = ({ ...rule, ...numbers } as Readonly<Record<string, unknown>>)[name];
    if (written !== undefined) refuse([name, "scope"], `expected either ${name} or scope: global, got both: ${why}`);
  }
  const everyMs = parseDuration(window) ?? parseDuration(refill?.every);
  if (everyMs === undefined || limit === 0) return;
  const isBucket = algorithm === "token-bucket" || algorithm === "gcra";
  const capacity = burst ?? limit;
  const amount = refill?.amount ?? limit;
  const isCounted = typeof capacity === "number" && typeof amount === "number" && amount > 0;
  const spanMs = isBucket && isCounted ? (capacity * everyMs) / amount : everyMs;
  if (spanMs >= SHORTEST_MS) return;
  const told = isBucket ? "a bucket that takes at least 1s to fill" : "a window of at least 1s";
  const got = isBucket ? `${Math.floor(spanMs)}ms` : describeValue(window);
  refuse(["window", "refill", "burst", "scope"], `expected ${told} where scope is global, got ${got}`);
}
