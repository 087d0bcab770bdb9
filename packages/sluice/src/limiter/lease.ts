/**
 * A lease as its holder sees it: release, renew, and a signal when it was lost.
 * A lease's id tells which places it holds, so that any instance can release it without a lookup. The store names each place by all
 * that the id says of it: an id that was changed names nothing.
 */
import type { Check } from "../check.js";
import { SluiceError } from "../errors.js";
import { LONGEST_DURATION_MS } from "../rules/duration.js";
import type { LeasePlaces, LeaseRequest, MaybePromise } from "../store/store.js";

/** Bounds what a forged id could make us parse. */
const LONGEST_LEASE_ID = 8_192;
/** The places that one request can hold under a rule: bounds what an id, forged or not, makes Redis do at once. */
export const MOST_PLACES = 1_000;

/** `local` leases live in the fallback of the instance that gave them. */
export function spellLeaseId({ places }: LeaseRequest, local: boolean): string {
  const [{ entryId }] = places as [LeasePlaces, ...LeasePlaces[]];
  // The first name is most often the name of all.
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
  if (typeof id !== "string" || id.length > LONGEST_LEASE_ID) throw refused();
  const [entryId, where, held, ...rest] = id.split(".");
  if (!isEntryId(entryId) || (where !== "l" && where !== "s") || !held || rest.length > 0) throw refused();
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(held, "base64url").toString());
  } catch {
    throw refused();
  }
  if (!Array.isArray(parsed) || parsed.length === 0 || parsed.length > 64) throw refused();
  const places = parsed.map((entry): LeasePlaces => {
    if (!Array.isArray(entry)) throw refused();
    const [key, count, ttlMs, ownEntryId = entryId] = entry as unknown[];
    // Only counters of concurrency rules: a forged id must not reach any other key.
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

/** What a lease asks of the limiter that gave it. */
export interface LeaseKeeper {
  release(id: string): MaybePromise<boolean>;
  /** Ms until it now ends; 0 if it was lost. */
  renew(id: string): MaybePromise<number>;
}

export class Lease {
  readonly id: string;
  /** As the decision was made. */
  readonly expiresAfterMs: number;
  readonly #keeper: LeaseKeeper;
  #endsAtMs: number;
  #abort: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  /** `sinceMs`: performance.now() when it began at the latest, so that our idea of the end is never later than the store's. */
  constructor(lease: { id: string; expiresAfterMs: number; keeper: LeaseKeeper; sinceMs: number }) {
    this.id = lease.id;
    this.expiresAfterMs = lease.expiresAfterMs;
    this.#keeper = lease.keeper;
    this.#endsAtMs = lease.sinceMs + lease.expiresAfterMs;
  }

  /** Aborts when the lease is lost: it ended without renewal, or a renewal found it gone. Not when it is released. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      this.#watch();
    }
    return this.#abort.signal;
  }

  /** Frees the place. False if it was not held any more; releasing twice is harmless. */
  async release(): Promise<boolean> {
    this.#end();
    return await this.#keeper.release(this.id);
  }

  /** Holds the place for another full term. False if it was lost: stop the work, someone else may have the place. */
  async renew(): Promise<boolean> {
    if (this.#over) return false;
    const sinceMs = performance.now();
    const expiresAfterMs = await this.#keeper.renew(this.id);
    if (expiresAfterMs === 0) {
      this.#lose();
      return false;
    }
    this.#endsAtMs = sinceMs + expiresAfterMs;
    if (this.#abort !== undefined) this.#watch();
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  #watch(): void {
    clearTimeout(this.#timer);
    if (this.#over) return;
    // Longer than a timer can hold: look again then.
    const waitMs = Math.min(Math.max(0, this.#endsAtMs - performance.now()), 2_147_483_647);
    this.#timer = setTimeout(() => (performance.now() >= this.#endsAtMs ? this.#lose() : this.#watch()), waitMs);
    this.#timer.unref();
  }

  #lose(): void {
    this.#end();
    this.#abort?.abort(new Error("the lease was lost: it ended before it was renewed"));
  }

  #end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
  }
}

/** The places that a decision's concurrency checks hold. `entryIdOf`: the name that a check was charged under, if it was. */
export function placesOf(checks: readonly Check[], entryIdOf: (i: number) => string | undefined): LeasePlaces[] {
  const places: LeasePlaces[] = [];
  for (const [i, { key, cost, plan }] of checks.entries()) {
    const entryId = entryIdOf(i);
    if (plan.policy.stored !== "concurrency" || entryId === undefined) continue;
    places.push({ key, entryId, places: cost, ttlMs: plan.policy.ttlMs });
  }
  return places;
}
