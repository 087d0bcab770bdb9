/**
 * The lines of a recording: what the store was asked, what it decided, and when by its clock. One JSON object per line; `docs/analysis.md`
 * documents them for users. In: requests and replies. Out: lines; and parsed lines, or undefined for invalid ones. Pure.
 */
import type { Attributes, Rule } from "sluice";
import type { AskedPart, Check, CheckRequest, StoreReply } from "sluice/internal";

export const FORMAT_VERSION = 1;

/** The first line of every segment. */
export interface HeaderLine {
  readonly sluice: "recording";
  readonly version: number;
  readonly instance: string;
  /** Counts from 1; a gap means that segments were deleted. */
  readonly segment: number;
  readonly at: number;
  readonly store: string;
  /** Whether all counters were empty when the recording started, as in a memory store. */
  readonly fresh: boolean;
  /** The attributes whose values are hashed. */
  readonly hashed: readonly string[];
}

/** A rule set, followed by `count` lines with a rule each. `book`: rules for a part of a request (Envoy), instead of those in force. */
export interface RulesLine {
  readonly rules: number;
  readonly count: number;
  readonly book?: true;
}

export interface RuleLine {
  readonly rule: Rule;
}

/** When something happened, by the store's clock. */
export interface LineTime {
  readonly at: number;
  /** Microseconds within `at`, if the store reports them; defines the order. */
  readonly us?: number;
}

export function timeOfUs(us: number): LineTime {
  const at = Math.floor(us / 1_000);
  return { at, us: us - 1_000 * at };
}

/** rule, mode, allowed, remaining, retryAfterMs, resetAfterMs, reason, variant. */
export type CheckLine = readonly [string, string, 0 | 1, number, number, number, (string | null)?, string?];

export interface PartLine {
  readonly attributes: Attributes;
  readonly cost?: number;
  readonly charge?: true;
  readonly book?: number;
}

export interface DecisionLine extends LineTime {
  readonly attributes: Attributes;
  readonly cost?: number;
  readonly id?: string;
  /** Identifies the request: refunds, releases and renewals refer to it. */
  readonly entry: string;
  /** Further names, if parts of the request were decided in different attempts (on a cluster). */
  readonly entries?: readonly string[];
  /** The version of the rules under which it was decided. */
  readonly rules: number;
  readonly charge?: true;
  readonly parts?: readonly PartLine[];
  /** The id was seen before: this repeats the first answer. */
  readonly repeated?: true;
  /** Only peeked. */
  readonly peek?: true;
  /** The failure policy that answered because the store did not; or `load`: shed before the store was asked. */
  readonly degraded?: string;
  /** Refused without the store, by the negative cache. */
  readonly remembered?: true;
  /** Includes rules with prefetch: units held by instances decide, not the counters alone. */
  readonly prefetched?: true;
  readonly allowed: 0 | 1;
  readonly checks: readonly CheckLine[];
}

/** Charges, by the names of their requests. */
export interface RefundLine extends LineTime {
  readonly refund: string;
  readonly id?: string;
}

export interface LeaseLine extends LineTime {
  readonly release?: readonly string[];
  readonly renew?: readonly string[];
}

interface GiveBackLine extends LineTime {
  readonly rules: number;
  readonly giveBack: readonly PartLine[];
}

interface ResetLine extends LineTime {
  readonly rules: number;
  readonly reset: string;
  readonly attributes: Attributes;
}

interface BlockLine extends LineTime {
  readonly rules: number;
  readonly block: string;
  readonly lengthMs: number;
  readonly attributes: Attributes;
}

/** This many lines are missing: the disk was slower than the traffic, or full. */
interface DroppedLine {
  readonly dropped: number;
}

/** The last line of a segment that was closed properly. */
interface EndLine {
  readonly end: true;
}

export type RecordingLine = HeaderLine | RulesLine | RuleLine | TimedLine | DroppedLine | EndLine;

/** Lines with the time of an event. */
export type TimedLine = DecisionLine | RefundLine | LeaseLine | GiveBackLine | ResetLine | BlockLine;

/** Replaces values that must not be written. */
export interface Redaction {
  readonly attributes: (attributes: Attributes) => Attributes;
  readonly id: (id: string) => string;
}

interface Decided {
  readonly request: CheckRequest;
  readonly reply: StoreReply;
  readonly at: number;
  readonly degraded?: string | undefined;
  readonly allowed: boolean;
  /** Whether instances may hold units of the store's counters. */
  readonly isRemote: boolean;
  readonly bookOf: (part: AskedPart) => number | undefined;
}

/** Assigned field by field: it is created for every decision, and spreading objects costs twice as much. */
export function decisionLine(decided: Decided, redact: Redaction): DecisionLine {
  const { request, reply, at, degraded, allowed, isRemote, bookOf } = decided;
  const { checks } = reply.repeated ?? request;
  const { options, parts, entryId } = request;
  const line: { -readonly [K in keyof DecisionLine]: DecisionLine[K] } = {
    at,
    attributes: parts === undefined ? redact.attributes(request.attributes) : {},
    entry: entryId,
    rules: request.rulesVersion,
    allowed: allowed ? 1 : 0,
    checks: checks.map(({ plan }, i) => checkLine(plan, reply.verdicts[i]!)),
  };
  if (reply.nowUs !== undefined) line.us = reply.nowUs % 1_000;
  if (options.cost !== undefined) line.cost = options.cost;
  if (options.id !== undefined) line.id = redact.id(options.id);
  if (reply.entryIds !== undefined) line.entries = [...new Set(reply.entryIds)];
  if (request.neverRefused) line.charge = true;
  if (parts !== undefined) line.parts = partLines(parts, bookOf, redact);
  if (reply.repeated !== undefined) line.repeated = true;
  if (!request.charge) line.peek = true;
  if (reply.isRemembered === true) line.remembered = true;
  if (degraded !== undefined) line.degraded = degraded;
  if (request.mayPrefetch && isRemote) line.prefetched = true;
  return line;
}

export function checkLine({ rule, mode, variant }: Check["plan"], found: StoreReply["verdicts"][number]): CheckLine {
  const { allowed, remaining, retryAfterMs, resetAfterMs, reason } = found;
  const passed = allowed ? 1 : 0;
  if (variant !== undefined)
    return [rule, mode, passed, remaining, retryAfterMs, resetAfterMs, reason ?? null, variant];
  if (reason !== undefined) return [rule, mode, passed, remaining, retryAfterMs, resetAfterMs, reason];
  return [rule, mode, passed, remaining, retryAfterMs, resetAfterMs];
}

export function partLines(
  parts: readonly AskedPart[],
  bookOf: (part: AskedPart) => number | undefined,
  redact: Redaction,
): PartLine[] {
  return parts.map((part) => {
    const book = bookOf(part);
    return {
      attributes: redact.attributes(part.attributes),
      ...(part.cost !== undefined && { cost: part.cost }),
      ...(part.charge === true && { charge: true as const }),
      ...(book !== undefined && { book }),
    };
  });
}

/** Undefined if it is no line of a recording: torn, edited by hand, or another program's. */
export function parseLine(text: string): RecordingLine | undefined {
  if (!text.startsWith("{")) return undefined;
  let line: Readonly<Record<string, unknown>>;
  try {
    line = JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
  return isLine(line) ? (line as unknown as RecordingLine) : undefined;
}

/** A recording may have been edited: validate every field that readers rely on. */
function isLine(line: Readonly<Record<string, unknown>>): boolean {
  if (line.sluice !== undefined) {
    return (
      line.sluice === "recording" &&
      isCount(line.version) &&
      typeof line.instance === "string" &&
      isCount(line.segment) &&
      isTime(line.at)
    );
  }
  if (line.rule !== undefined) return isObject(line.rule);
  if (line.count !== undefined) return isCount(line.rules) && isCount(line.count);
  if (line.dropped !== undefined) return isCount(line.dropped);
  if (line.end !== undefined) return line.end === true;
  if (!isTime(line.at) || !(line.us === undefined || (isCount(line.us) && (line.us as number) < 1_000))) return false;
  if (line.refund !== undefined) return typeof line.refund === "string" && isOptional(line.id, "string");
  if (line.release !== undefined) return isTexts(line.release);
  if (line.renew !== undefined) return isTexts(line.renew);
  if (line.giveBack !== undefined) return isCount(line.rules) && isParts(line.giveBack);
  if (line.reset !== undefined)
    return typeof line.reset === "string" && isCount(line.rules) && isObject(line.attributes);
  if (line.block !== undefined) {
    const isKey = typeof line.block === "string" && isCount(line.rules) && isObject(line.attributes);
    return isKey && isCount(line.lengthMs) && line.lengthMs !== 0;
  }
  return isDecision(line);
}

function isDecision(line: Readonly<Record<string, unknown>>): boolean {
  return (
    isObject(line.attributes) &&
    typeof line.entry === "string" &&
    isCount(line.rules) &&
    (line.allowed === 0 || line.allowed === 1) &&
    isOptional(line.id, "string") &&
    isOptional(line.cost, "number") &&
    (line.parts === undefined || isParts(line.parts)) &&
    (line.entries === undefined || isTexts(line.entries)) &&
    Array.isArray(line.checks) &&
    line.checks.every((check) => Array.isArray(check) && check.length >= 6)
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Within the range of a Date. */
function isTime(value: unknown): boolean {
  return typeof value === "number" && value >= 0 && value <= 8.64e15;
}

function isOptional(value: unknown, type: string): boolean {
  return value === undefined || typeof value === type;
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

function isParts(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every(
      (part) =>
        isObject(part) &&
        isObject(part.attributes) &&
        isOptional(part.cost, "number") &&
        isOptional(part.book, "number"),
    )
  );
}
