/**
 * Speaks the scripts' language: requests to KEYS and ARGV, replies to verdicts. The layout is told at the top of decide.lua.
 * Pure: no connection, no clock.
 */
import { type Boundaries, boundariesAround, type Calendar } from "../algorithms/calendar.js";
import { type Verdict, verdict } from "../algorithms/model.js";
import type { Policy } from "../algorithms/policy.js";
import type { Check } from "../check.js";
import type { Reason } from "../decision.js";
import { KEY_PREFIX, storedAs } from "../keys.js";
import type { Receipt, StoreReply, StoreRequest } from "./store.js";

type Argument = string | number;

/** In the order of the codes in prelude.lua. */
const reasons: readonly (Reason | undefined)[] = [
  undefined,
  "limit",
  "min-interval",
  "concurrency",
  "cost-exceeds-limit",
];
const NUMBERS_PER_CHECK = 6;

/** A request with the key of its id record, which depends on where the counters live. */
export interface Addressed {
  readonly request: StoreRequest;
  readonly recordKey: string | undefined;
}

const NO_BOUNDARIES: Boundaries = [0, 0, 0, 0, 0];
const knownBoundaries = new WeakMap<Calendar, Boundaries>();

/** Boundaries whose second or third window holds the server's present, as far as it is known. */
function boundariesOf(calendar: Calendar, serverNowMs: number): Boundaries {
  let known = knownBoundaries.get(calendar);
  if (known === undefined || serverNowMs < known[1] || serverNowMs >= known[3]) {
    known = boundariesAround(calendar, serverNowMs);
    knownBoundaries.set(calendar, known);
  }
  return known;
}

/** A policy as a script reads it: letter, then as many numbers as the algorithm's `arity`. */
export function policyArguments(policy: Policy, serverNowMs: number): Argument[] {
  switch (policy.stored) {
    case "token-bucket":
    case "gcra":
      return [storedAs[policy.stored], policy.capacity, policy.amount, policy.scaleMs];
    case "fixed-window": {
      const boundaries = policy.calendar === undefined ? NO_BOUNDARIES : boundariesOf(policy.calendar, serverNowMs);
      return [storedAs[policy.stored], policy.limit, policy.windowMs, ...boundaries];
    }
    case "sliding-counter":
      return [storedAs[policy.stored], policy.limit, policy.windowMs];
    case "rolling-window":
    case "rolling-window-packed":
      return [storedAs[policy.stored], policy.limit, policy.windowMs, policy.minIntervalMs];
    case "concurrency":
      return [storedAs[policy.stored], policy.limit, policy.ttlMs];
  }
}

function modeArgument({ plan, live }: Check): number {
  if (plan.mode === "candidate") return live + 2;
  return plan.mode === "enforce" ? 0 : 1;
}

export function encodeDecide(batch: readonly Addressed[], serverNowMs: number): { keys: string[]; args: Argument[] } {
  const keys: string[] = [];
  const keyPositions = new Map<string, number>();
  const policyPositions = new Map<Policy, number>();
  const policies: Argument[] = [];
  const requests: Argument[] = [];

  const keyPosition = (key: string): number => {
    let position = keyPositions.get(key);
    if (position === undefined) {
      position = keys.push(KEY_PREFIX + key);
      keyPositions.set(key, position);
    }
    return position;
  };
  for (const { request, recordKey } of batch) {
    if (recordKey === undefined) requests.push(0);
    else requests.push(keyPosition(recordKey), JSON.stringify(receiptOf(request)));
    requests.push(request.charge ? 1 : 0, request.entryId, request.checks.length);
    for (const check of request.checks) {
      const { policy } = check.plan;
      let position = policyPositions.get(policy);
      if (position === undefined) {
        position = policyPositions.size + 1;
        policyPositions.set(policy, position);
        policies.push(...policyArguments(policy, serverNowMs));
      }
      requests.push(keyPosition(check.key), position, modeArgument(check), check.cost);
    }
  }
  return { keys, args: [policyPositions.size, ...policies, batch.length, ...requests] };
}

function receiptOf({ entryId, rulesVersion, checks }: StoreRequest): Receipt {
  return { entryId, rulesVersion, checks };
}

function verdictAt(numbers: readonly unknown[], at: number): Verdict {
  const found = verdict(
    Number(numbers[at]) === 1,
    Number(numbers[at + 1]),
    Number(numbers[at + 2]),
    Number(numbers[at + 3]),
    reasons[Number(numbers[at + 4])],
  );
  found.charged = Number(numbers[at + 5]) === 1;
  return found;
}

/** `calendar`: ask again with boundaries around `nowMs`. `foreign`: a counter's key holds something else. */
export type Decoded = StoreReply | "calendar" | "foreign";

export function decodeDecide(
  reply: readonly unknown[],
  batch: readonly Addressed[],
): { nowMs: number; replies: Decoded[] } {
  const nowMs = Number(reply[0]);
  const replies: Decoded[] = [];
  let at = 1;
  for (const { request } of batch) {
    const first = reply[at];
    if (typeof first === "string") {
      replies.push(decodeRecord(first));
      at++;
    } else if (first === -1 || first === -2) {
      replies.push(first === -1 ? "calendar" : "foreign");
      at++;
    } else {
      const verdicts: Verdict[] = [];
      for (let i = 0; i < request.checks.length; i++, at += NUMBERS_PER_CHECK) verdicts.push(verdictAt(reply, at));
      replies.push({ nowMs, verdicts, guarantee: "atomic" });
    }
  }
  return { nowMs, replies };
}

/** The record of a request id: an "R" if it was refunded, the time and the numbers of the reply, a line end, the receipt. */
export function decodeRecord(record: string): StoreReply {
  const line = record.indexOf("\n");
  const numbers = record.slice(record.startsWith("R") ? 1 : 0, line).split(" ");
  const repeated = JSON.parse(record.slice(line + 1)) as Receipt;
  const verdicts = repeated.checks.map((_, i) => verdictAt(numbers, 1 + i * NUMBERS_PER_CHECK));
  return { nowMs: Number(numbers[0]), verdicts, guarantee: "atomic", repeated };
}
