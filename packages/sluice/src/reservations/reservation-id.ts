/**
 * A reservation's id lists the counters in which it holds units, so that any instance can settle it without a lookup. The store has a
 * digest of the list, so an id that was tampered with matches nothing. The name in it is random and unguessable. Pure.
 */
import { type Calendar, isTimezone } from "../algorithms/calendar.js";
import type { Policy } from "../algorithms/policy.js";
import type { CheckMode } from "../decision.js";
import { SluiceError } from "../errors.js";
import { LONGEST_NAMING_ID, MOST_NAMED, storedAs } from "../keys.js";
import type { HeldCounter, Reserved } from "../store/reserved.js";

/** Distinct calendars: the windows around the present are computed for each. */
const MOST_CALENDARS = 8;
const MOST_KNOWN_CALENDARS = 256;
const LONGEST_TERM_MS = 86_400_000;

const modes: readonly CheckMode[] = ["enforce", "shadow", "candidate"];
const COUNTER_KEY = /^\{[^{}]*\}:[^{}]*:[bgfszpBGFSZP]$/;
const ENTRY_ID = /^[\w-]{1,32}$/;

/** A `local` reservation lives in the fallback of the instance that made it. */
export function spellReservationId({ ttlMs, counters }: Reserved, local: boolean): string {
  const { entryId } = counters[0]!;
  const listed = counters.map((counter) => [
    counter.rule,
    modes.indexOf(counter.mode),
    counter.key,
    counter.policy,
    counter.cost,
    counter.finishes ? 1 : 0,
    counter.keyClass,
    // Usually all counters have the first one's name.
    ...(counter.entryId === entryId ? [] : [counter.entryId]),
  ]);
  return `${entryId}.${local ? "l" : "s"}.${Buffer.from(JSON.stringify([ttlMs, listed])).toString("base64url")}`;
}

export function parseReservationId(id: unknown): { reserved: Reserved; local: boolean } {
  if (typeof id !== "string" || id.length > LONGEST_NAMING_ID) throw noReservation();
  const [entryId, where, spelled, ...rest] = id.split(".");
  if (!isEntryId(entryId) || (where !== "l" && where !== "s") || !spelled || rest.length > 0) throw noReservation();
  const bytes = Buffer.from(spelled, "base64url");
  // Node's decoder skips characters outside the alphabet: one reservation would have many ids.
  if (bytes.toString("base64url") !== spelled) throw noReservation();
  let parsed: unknown;
  try {
    parsed = JSON.parse(bytes.toString());
  } catch {
    throw noReservation();
  }
  if (!Array.isArray(parsed) || parsed.length !== 2) throw noReservation();
  const [ttlMs, listed] = parsed as unknown[];
  if (!isCount(ttlMs) || ttlMs > LONGEST_TERM_MS) throw noReservation();
  if (!Array.isArray(listed) || listed.length === 0 || listed.length > MOST_NAMED) throw noReservation();
  const counters = listed.map((entry) => counterIn(entry, entryId));
  const calendars = counters.flatMap(({ policy }) =>
    "calendar" in policy && policy.calendar ? [policy.calendar] : [],
  );
  if (new Set(calendars).size > MOST_CALENDARS) throw noReservation();
  return { reserved: { ttlMs, counters }, local: where === "l" };
}

function counterIn(entry: unknown, entryId: string): HeldCounter {
  if (!Array.isArray(entry)) throw noReservation();
  const [rule, mode, key, policy, cost, finishes, keyClass, ownEntryId = entryId] = entry as unknown[];
  if (typeof rule !== "string" || typeof cost !== "string" || typeof keyClass !== "string") throw noReservation();
  // Counters only: a forged id must not reach any other key.
  if (typeof key !== "string" || !COUNTER_KEY.test(key)) throw noReservation();
  const named = modes[mode as number];
  if (named === undefined || !isPolicy(policy) || !isEntryId(ownEntryId)) throw noReservation();
  return {
    entryId: ownEntryId,
    rule,
    mode: named,
    key,
    policy: withKnownCalendar(policy),
    cost,
    finishes: finishes === 1,
    keyClass,
  };
}

const knownCalendars = new Map<string, Calendar>();

/** Calendar windows are cached by calendar object: use the same object for every id. */
function withKnownCalendar(policy: Policy): Policy {
  if (!("calendar" in policy) || policy.calendar === undefined) return policy;
  const { unit, timezone } = policy.calendar;
  const name = `${unit} ${timezone}`;
  const calendar = knownCalendars.get(name) ?? { unit, timezone };
  if (knownCalendars.size >= MOST_KNOWN_CALENDARS) knownCalendars.clear();
  knownCalendars.set(name, calendar);
  return { ...policy, calendar };
}

const numbersOf: Readonly<Record<Exclude<Policy["stored"], "concurrency" | "pool">, readonly string[]>> = {
  "token-bucket": ["limit", "capacity", "amount", "scaleMs"],
  gcra: ["limit", "capacity", "amount", "scaleMs"],
  "fixed-window": ["limit", "windowMs"],
  "sliding-counter": ["limit", "windowMs"],
  "rolling-window": ["limit", "windowMs", "minIntervalMs"],
  "rolling-window-packed": ["limit", "windowMs", "minIntervalMs"],
};

/** Whether scripts can work with it; the digest verifies its values. */
function isPolicy(value: unknown): value is Policy {
  if (typeof value !== "object" || value === null) return false;
  const policy = value as Record<string, unknown>;
  const { stored, calendar } = policy;
  if (typeof stored !== "string" || !Object.hasOwn(storedAs, stored) || !Object.hasOwn(numbersOf, stored)) return false;
  const names = numbersOf[stored as keyof typeof numbersOf];
  if (!names.every((name) => Number.isSafeInteger(policy[name]) && (policy[name] as number) >= 0)) return false;
  return calendar === undefined || isCalendar(calendar);
}

function isCalendar(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { unit, timezone } = value as Record<string, unknown>;
  if (unit !== "day" && unit !== "week" && unit !== "month") return false;
  return typeof timezone === "string" && timezone.length <= 64 && isTimezone(timezone);
}

function noReservation(): SluiceError {
  return new SluiceError("invalid-request", "reservation: expected the id of a reservation, as a decision gave it");
}

function isEntryId(value: unknown): value is string {
  return typeof value === "string" && ENTRY_ID.test(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
