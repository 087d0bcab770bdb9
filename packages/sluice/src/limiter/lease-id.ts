/**
 * A lease id lists the places that the lease holds, so that any instance can release it without a lookup. The store names each place by
 * everything in the id, so an id that was tampered with matches nothing. Pure.
 */
import { SluiceError } from "../errors.js";
import { LONGEST_NAMING_ID, MOST_NAMED } from "../keys.js";
import { LONGEST_DURATION_MS } from "../rules/duration.js";
import type { LeasePlaces, LeaseRequest } from "../store/store.js";

/** The most places that one request can hold under a rule: bounds the work that one id, forged or not, can cause in Redis. */
export const MOST_PLACES = 1_000;

/** A `local` lease lives in the fallback of the instance that granted it. */
export function spellLeaseId({ places }: LeaseRequest, local: boolean): string {
  const [{ entryId }] = places as [LeasePlaces, ...LeasePlaces[]];
  // Usually all places have the first one's name.
  const held = places.map((place) => [
    place.key,
    place.places,
    place.ttlMs,
    ...(place.entryId === entryId ? [] : [place.entryId]),
  ]);
  return `${entryId}.${local ? "l" : "s"}.${Buffer.from(JSON.stringify(held)).toString("base64url")}`;
}

export function parseLeaseId(id: unknown): { lease: LeaseRequest; local: boolean } {
  const refused = (): SluiceError =>
    new SluiceError("invalid-request", "lease: expected the id of a lease, as a decision gave it");
  if (typeof id !== "string" || id.length > LONGEST_NAMING_ID) throw refused();
  const [entryId, where, held, ...rest] = id.split(".");
  if (!isEntryId(entryId) || (where !== "l" && where !== "s") || !held || rest.length > 0) throw refused();
  const bytes = Buffer.from(held, "base64url");
  // Node's decoder skips characters outside the alphabet: one lease would have many ids.
  if (bytes.toString("base64url") !== held) throw refused();
  let parsed: unknown;
  try {
    parsed = JSON.parse(bytes.toString());
  } catch {
    throw refused();
  }
  if (!Array.isArray(parsed) || parsed.length === 0 || parsed.length > MOST_NAMED) throw refused();
  const places = parsed.map((entry): LeasePlaces => {
    if (!Array.isArray(entry)) throw refused();
    const [key, count, ttlMs, ownEntryId = entryId] = entry as unknown[];
    // Concurrency counters only: a forged id must not reach any other key.
    if (typeof key !== "string" || !/^\{[^{}]*\}:[^{}]*:[cC]$/.test(key)) throw refused();
    if (!isCount(count) || count > MOST_PLACES || !isCount(ttlMs) || ttlMs > LONGEST_DURATION_MS) throw refused();
    if (!isEntryId(ownEntryId)) throw refused();
    return { key, entryId: ownEntryId, places: count, ttlMs };
  });
  return { lease: { places }, local: where === "l" };
}

function isEntryId(value: unknown): value is string {
  return typeof value === "string" && /^[\w-]{1,32}$/.test(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
