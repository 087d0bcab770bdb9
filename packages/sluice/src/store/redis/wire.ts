/**
 * Encodes requests as KEYS and ARGV of the scripts, and decodes their replies. The headers of decide.lua, fetch.lua and decide-single.lua
 * specify the layouts. Pure: no connection, no clock.
 */
import { type Boundaries, boundariesAround, type Calendar } from "../../algorithms/calendar.js";
import type { Fetch, Grant } from "../../algorithms/grants.js";
import { type Verdict, verdict } from "../../algorithms/model.js";
import type { Policy } from "../../algorithms/policy.js";
import { callerWait } from "../../algorithms/turns.js";
import type { Check } from "../../check.js";
import type { Reason } from "../../decision.js";
import { grantsKey, storedAs, turnsKey } from "../../keys.js";
import { heldCounters, holdDigest } from "../reserved.js";
import type { Receipt, StoreReply, StoreRequest } from "../store.js";
import { keepsEntryIds } from "./choose-script.js";
import { arrayIn, integerIn, malformed, numberAt, numbersNamed } from "./script-reply.js";

type Argument = string | number;
/** The scripts that can decide anything. */
type DecideScript = "decide" | "fetch" | "turns";

/** In the order of the codes in prelude.lua. */
export const reasons: readonly (Reason | undefined)[] = [
  undefined,
  "limit",
  "min-interval",
  "concurrency",
  "cost-exceeds-limit",
  "blocked",
];
/** As decide.lua packs them: a call always has fewer policies, and a request fewer checks, than these. */
const MOST_POLICIES = 65_536;
const MOST_MODES = 65_536;
/** Added to the mode of a check with a block. */
const HAS_BLOCK = 32_768;
/** Added to the mode of a check whose units are held until they are settled. */
const IS_HELD = 16_384;
/** The position of a block's key and the number of lengths that follow are packed into one number. */
const MOST_LENGTHS = 16;
/** Added to the first code of a request whose numbers end with the units given back to its buckets earlier. */
const TELLS_GIVEN = 64;
const MOST_CODES = reasons.length * 4;
const REPLY = "an array of now_us and verdicts";

/** A request with the key of its id record, which depends on where the counters live. */
export interface Addressed {
  readonly request: StoreRequest;
  readonly recordKey: string | undefined;
  /** The key of its hold, if it holds units. */
  readonly holdKey?: string | undefined;
  /** Set if other parts of the same request are decided elsewhere, or its place is kept there: it may have to be undone. */
  readonly isPart?: boolean | undefined;
  /** Its deadline, if not a full deadline after its call: it is one of several calls. */
  readonly endsAtMonotonicMs?: number | undefined;
}

const NO_BOUNDARIES: Boundaries = [0, 0, 0, 0, 0];
const knownBoundaries = new WeakMap<Calendar, Boundaries>();

/** Boundaries whose second or third window contains the server's current time, as far as it is known. */
function boundariesOf(calendar: Calendar, serverNowMs: number): Boundaries {
  let known = knownBoundaries.get(calendar);
  if (known === undefined || serverNowMs < known[1] || serverNowMs >= known[3]) {
    known = boundariesAround(calendar, serverNowMs);
    knownBoundaries.set(calendar, known);
  }
  return known;
}

/** A policy in the form that a script reads: its letter, then as many numbers as the algorithm's `arity`. */
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
    case "pool":
      return [storedAs[policy.stored], policy.largestCost];
  }
}

function modeArgument({ plan, live }: Check): number {
  if (plan.mode === "candidate") return live + 2;
  return plan.mode === "enforce" ? 0 : 1;
}

/** `sentAtMs`: the earliest possible send time, on the server's clock. */
export function encodeDecide(
  batch: readonly Addressed[],
  { serverNowMs, sentAtMs }: { serverNowMs: number; sentAtMs: number },
  script: DecideScript = "decide",
): { keys: string[]; args: Argument[] } {
  const keys: string[] = [];
  const keyPositions = new Map<string, number>();
  const policyPositions = new Map<Policy, number>();
  const policies: Argument[] = [];
  const requests: Argument[] = [];

  const keyPosition = (key: string): number => {
    let position = keyPositions.get(key);
    if (position === undefined) {
      position = keys.push(key);
      keyPositions.set(key, position);
    }
    return position;
  };
  /** Position of a counter, followed by its grants. It may already be in the list for a policy without prefetch. */
  const heldPosition = (key: string): number => {
    const grants = grantsKey(key);
    let position = keyPositions.get(grants);
    if (position === undefined) {
      position = keys.push(key, grants) - 1;
      keyPositions.set(grants, position);
    }
    return position;
  };
  for (const { request, recordKey, holdKey, isPart, endsAtMonotonicMs } of batch) {
    const { checks, entryId, fingerprint } = request;
    const named = entryId !== "";
    const recorded = recordKey !== undefined;
    const { holdMs } = request;
    const flags =
      (holdMs === undefined ? 0 : 16) +
      (isPart ? 8 : 0) +
      (named ? 4 : 0) +
      (recorded ? 2 : 0) +
      (request.charge ? 1 : 0);
    requests.push(checks.length * 32 + flags);
    if (named) requests.push(entryId);
    if (recorded) requests.push(keyPosition(recordKey), fingerprint, spellReceipt(request));
    if (holdMs !== undefined) {
      const digest = holdDigest({ ttlMs: holdMs, counters: heldCounters(checks, () => entryId) });
      requests.push(keyPosition(holdKey!), digest, holdMs);
    }
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i]!;
      const { policy, prefetchMs, maxWaitMs } = check.plan;
      let position = policyPositions.get(policy);
      if (position === undefined) {
        position = policyPositions.size + 1;
        policyPositions.set(policy, position);
        policies.push(...policyArguments(policy, serverNowMs));
        if (script === "fetch") policies.push(prefetchMs);
        if (script !== "decide") policies.push(maxWaitMs);
        if (script !== "decide" && maxWaitMs > 0) policies.push(callerWait(policy, maxWaitMs));
      }
      const { block } = check;
      const keyAt = prefetchMs > 0 ? heldPosition(check.key) : keyPosition(check.key);
      const isHeld = holdMs !== undefined && check.held !== undefined;
      const mode = modeArgument(check) + (block === undefined ? 0 : HAS_BLOCK) + (isHeld ? IS_HELD : 0);
      const packed = (keyAt * MOST_POLICIES + position) * MOST_MODES + mode;
      if (check.charge === true) requests.push(-packed, -1 - check.cost);
      else if (check.cost === 1) requests.push(packed);
      else requests.push(-packed, check.cost);
      if (block !== undefined)
        requests.push(keyPosition(block.key) * MOST_LENGTHS + block.lengthsMs.length, ...block.lengthsMs);
      if (prefetchMs > 0) requests.push(spellFetch(request.fetches?.[i]));
      // If a request is sent as several calls, this one is for a slot that is being migrated, where a script has one key.
      if (maxWaitMs > 0) requests.push(endsAtMonotonicMs === undefined ? keyPosition(turnsKey(check.key)) : 0);
    }
  }
  return { keys, args: [policyPositions.size, ...policies, batch.length, sentAtMs, ...requests] };
}

function spellFetch(fetch: Fetch | undefined): string {
  return fetch === undefined
    ? ""
    : `${fetch.seq} ${fetch.used} ${fetch.held} ${fetch.want} ${fetch.need ?? 0} ${fetch.holder}`;
}

export function spellReceipt({ entryId, rulesVersion, checks }: StoreRequest, timesMs?: readonly number[]): string {
  return JSON.stringify({ entryId, rulesVersion, checks, timesMs } satisfies Receipt);
}

interface ReadInto {
  readonly checks: readonly Check[];
  readonly verdicts: Verdict[];
  readonly fetches?: readonly (Fetch | undefined)[];
  readonly grants?: (Grant | undefined)[];
}

/** Reads verdicts as decide.lua encodes them, starting at `at`; returns where the next ones start. */
function readVerdicts(numbers: readonly number[], at: number, { checks, verdicts, fetches, grants }: ReadInto): number {
  let next = at;
  const tellsGiven = numbers[at]! >= TELLS_GIVEN;
  for (let i = 0; i < verdicts.length; i++, next += 3) {
    const code = i === 0 && tellsGiven ? numbers[next]! - TELLS_GIVEN : numbers[next]!;
    if (!isVerdictCode(code)) throw malformed(codeAt(next, numbers), numbers[next]);
    const allowed = (code & 1) === 1;
    const found = verdict(allowed, numberAt(numbers, next + 1), 0, numberAt(numbers, next + 2), reasons[code >> 2]);
    found.charged = (code & 2) === 2;
    if (!allowed) found.retryAfterMs = numberAt(numbers, next++ + 3);
    verdicts[i] = found;
    if (fetches?.[i] !== undefined) {
      grants![i] = {
        units: numberAt(numbers, next + 3),
        kept: numberAt(numbers, next + 4),
        lifeMs: numberAt(numbers, next + 5),
        retryAfterMs: numberAt(numbers, next + 6),
      };
      next += 4;
    }
    if (checks[i]!.plan.maxWaitMs > 0) found.delayMs = numberAt(numbers, next++ + 3);
  }
  return tellsGiven ? readGiven(numbers, next, verdicts) : next;
}

/** Packs a reason, and whether the check passed and was charged. The second condition rejects NaN, negative numbers and fractions. */
export function isVerdictCode(code: number): boolean {
  return code < MOST_CODES && code >>> 0 === code;
}

function codeAt(at: number, numbers: readonly number[]): string {
  return `the code of a verdict, below ${MOST_CODES}, as element ${at} of ${numbers.length}`;
}

/** How much each check's bucket had been given back before it was charged. */
function readGiven(numbers: readonly number[], at: number, verdicts: readonly Verdict[]): number {
  for (let i = 0; i < verdicts.length; i++) {
    const given = numberAt(numbers, at + i);
    if (given > 0) verdicts[i]!.given = given;
  }
  return at + verdicts.length;
}

/** The verdicts of a reply, as decide.lua writes them to a record: what `decodeRecord` reads. */
export function spellVerdicts({ nowMs, verdicts }: StoreReply, checks: readonly Check[]): string {
  const numbers = verdicts.flatMap(
    ({ allowed, remaining, retryAfterMs, resetAfterMs, reason, charged, delayMs }, i) => {
      const code = reasons.indexOf(reason) * 4 + (charged ? 2 : 0) + (allowed ? 1 : 0);
      const turn = checks[i]!.plan.maxWaitMs > 0 ? [delayMs] : [];
      return allowed
        ? [code, remaining, resetAfterMs, ...turn]
        : [code, remaining, resetAfterMs, retryAfterMs, ...turn];
    },
  );
  const givens = verdicts.map(({ given = 0 }) => given);
  return [nowMs, ...numbers, ...(givens.some((given) => given > 0) ? givens : [])].join(" ");
}

/** Why a request with an id was not decided: the id belongs to another request, or was given back while this one was in flight. */
export type IdProblem = "conflict" | "late";

/** Milliseconds, from the microseconds that a script returns. */
export function msOf(nowUs: unknown): number {
  return Math.floor(Number(nowUs) / 1_000);
}

/** One reply per request. */
export function decodeDecide(answer: unknown, batch: readonly Addressed[]): (StoreReply | IdProblem)[] {
  const given = arrayIn(answer, REPLY);
  const reply = numbersIn(given);
  const nowUs = numberAt(reply, 0);
  const nowMs = msOf(nowUs);
  const replies = new Array<StoreReply | IdProblem>(batch.length);
  let at = 1;
  for (let i = 0; i < batch.length; i++) {
    const record = typeof reply[at] === "number" ? undefined : recordText(given[at]);
    if (record !== undefined) {
      const found = decodeRecord(record, nowMs);
      replies[i] = typeof found === "string" ? found : { ...found, nowUs };
      at++;
    } else {
      const { checks, fetches } = batch[i]!.request;
      const verdicts = new Array<Verdict>(checks.length);
      if (fetches === undefined) {
        at = readVerdicts(reply, at, { checks, verdicts });
        replies[i] = { nowMs, verdicts, guarantee: "atomic", nowUs };
      } else {
        const grants = new Array<Grant | undefined>(checks.length);
        at = readVerdicts(reply, at, { checks, verdicts, fetches, grants });
        replies[i] = { nowMs, verdicts, guarantee: "atomic", nowUs, grants };
      }
    }
  }
  if (at !== reply.length) throw malformed(`${at} elements`, given);
  return replies;
}

/** A client may be configured to return numbers as strings. Records are left alone, and read from the reply itself. */
function numbersIn(reply: readonly unknown[]): readonly number[] {
  if (typeof reply[0] === "number") return reply as readonly number[];
  return reply.map((value) => (recordText(value) === undefined ? integerIn(value) : value)) as readonly number[];
}

/** Identical requests: same counter, policy and cost. */
interface Group {
  readonly check: Check;
  /** Indices of its requests in the batch. */
  readonly members: number[];
}

/**
 * Single-check requests, all of one stored form, for decide-single.lua. `plainPolicy`: the only policy of a batch in which every request
 * costs 1 and has its own counter; a plain script takes the same arguments.
 */
export function encodeSingles(
  batch: readonly Addressed[],
  serverNowMs: number,
): { keys: string[]; args: Argument[]; groups: readonly Group[]; plainPolicy: Policy | undefined } {
  const keys: string[] = [];
  const groups: Group[] = [];
  const byKey = new Map<string, Group>();
  const policies: Policy[] = [];
  let plain = true;
  for (let i = 0; i < batch.length; i++) {
    const check = batch[i]!.request.checks[0]!;
    const alike = byKey.get(check.key);
    if (alike !== undefined && alike.check.plan.policy === check.plan.policy && alike.check.cost === check.cost) {
      alike.members.push(i);
      plain = false;
      continue;
    }
    const group = { check, members: [i] };
    keys.push(check.key);
    groups.push(group);
    byKey.set(check.key, group);
    if (!policies.includes(check.plan.policy)) policies.push(check.plan.policy);
    if (check.cost !== 1) plain = false;
  }
  const named = keepsEntryIds(groups[0]!.check.plan.policy.stored);
  const args: Argument[] = [policies.length];
  for (const policy of policies) args.push(...policyArguments(policy, serverNowMs).slice(1));
  if (plain && !named && policies.length === 1) {
    return { keys, args, groups, plainPolicy: policies[0]! };
  }
  for (const { check, members } of groups) {
    args.push(policies.indexOf(check.plan.policy) + 1, check.cost, members.length);
    if (named) for (const i of members) args.push(batch[i]!.request.entryId);
  }
  return { keys, args, groups, plainPolicy: undefined };
}

export function decodeSingles(answer: unknown, groups: readonly Group[], count: number): StoreReply[] {
  const reply = numbersIn(arrayIn(answer, REPLY));
  const nowUs = numberAt(reply, 0);
  const nowMs = msOf(nowUs);
  const replies = new Array<StoreReply>(count);
  let at = 1;
  for (const { members } of groups) {
    const code = reply[at++]!;
    const passed = Math.abs(code);
    // This also bounds the loop below.
    if (!(passed <= members.length && Number.isInteger(code))) {
      throw malformed(`how many of ${members.length} passed as element ${at - 1} of ${reply.length}`, code);
    }
    const given = code < 0 ? numberAt(reply, at++) : 0;
    for (let m = 0; m < passed; m++, at += 2) {
      const found = verdict(true, numberAt(reply, at), 0, numberAt(reply, at + 1), undefined);
      found.charged = true;
      if (given > 0) found.given = given;
      replies[members[m]!] = { nowMs, verdicts: [found], guarantee: "atomic", nowUs };
    }
    if (passed === members.length) continue;
    const reason = numberAt(reply, at + 3);
    if (reasons[reason] === undefined)
      throw malformed(`a reason's code as element ${at + 3} of ${reply.length}`, reason);
    for (let m = passed; m < members.length; m++) {
      const found = verdict(
        false,
        numberAt(reply, at),
        numberAt(reply, at + 1),
        numberAt(reply, at + 2),
        reasons[reason],
      );
      replies[members[m]!] = { nowMs, verdicts: [found], guarantee: "atomic", nowUs };
    }
    at += 4;
  }
  if (at !== reply.length) throw malformed(`${at} elements`, reply);
  return replies;
}

/** A record as text. A client may be configured to return numbers as strings, or strings as buffers. */
export function recordText(value: unknown): string | undefined {
  const text = Buffer.isBuffer(value) ? value.toString() : value;
  return typeof text === "string" && text.includes("\n") ? text : undefined;
}

/** What id-record.lua answers instead of a record. */
const idProblems: Readonly<Record<string, IdProblem>> = { "!\n": "conflict", "<\n": "late" };

/**
 * Reads the record of a request id, as id-record.lua writes it, or the answer in its place. The layout is fixed by its key, so another one
 * is a broken invariant.
 */
export function decodeRecord(record: string, atMs: number): StoreReply | IdProblem {
  const problem = idProblems[record];
  if (problem !== undefined) return problem;
  const [header, numbers, receipt] = record.split("\n");
  if (!header?.startsWith("3 "))
    throw malformed("a request-id record of layout 3, not one of an unknown layout", record);
  const spelled = (numbers ?? "").split(" ").map((text) => numbersNamed([text], "a number of a record")[0]!);
  const { timesMs, ...first } = readReceipt(receipt);
  const repeated = { ...first, atMs };
  const verdicts = new Array<Verdict>(repeated.checks.length);
  const end = readVerdicts(spelled, 1, { checks: repeated.checks, verdicts });
  // An older version wrote nothing more: a refund then assumes that everything was given back after the charge.
  if (spelled.length >= end + verdicts.length) readGiven(spelled, end, verdicts);
  const reply: StoreReply = { nowMs: spelled[0]!, verdicts, guarantee: "atomic", repeated };
  return timesMs === undefined ? reply : { ...reply, timesMs };
}

function readReceipt(text: string | undefined): Receipt {
  let receipt: Partial<Receipt> | null = null;
  try {
    receipt = JSON.parse(text ?? "");
  } catch {
    // Handled like a receipt of another shape.
  }
  // A plan written by an older instance has no `maxWaitMs`.
  const isCheck = (check: Partial<Check> | null): boolean =>
    typeof check?.key === "string" &&
    Number.isFinite(check.cost) &&
    typeof check.plan === "object" &&
    check.plan !== null &&
    Number.isFinite(check.plan.maxWaitMs ?? 0);
  if (typeof receipt?.entryId === "string" && Array.isArray(receipt.checks) && receipt.checks.every(isCheck)) {
    return receipt as Receipt;
  }
  throw malformed("the receipt of a request as JSON", text);
}
