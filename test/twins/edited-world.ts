/**
 * The oracle of refunds under rules that are edited. It keeps every charge with the policy in force at the time, and computes the counter
 * anew from all of them. A refund sets the units of its own charge to 0 and changes nothing else: the instant of the charge stays, because a
 * charge also brings the counter up to date under its own policy, and no refund takes that back.
 * Pure: time is an argument.
 */
import type { FixedWindowPolicy, Policy } from "../../packages/sluice/src/algorithms/policy.js";

export interface Happened {
  readonly kind: "charge" | "refused" | "nameless";
  readonly atMs: number;
  readonly policy: Policy;
  units: number;
}

/** What a counter has room for, had only these things happened. */
export function worldOf(policy: Policy, happened: readonly Happened[], nowMs: number): number {
  const world = isBucket(policy) ? new Bucket() : "minIntervalMs" in policy ? new Rolling() : new Cells();
  for (const event of happened) {
    world.expire(event.atMs);
    if (event.kind === "charge") world.charge(event.policy, event.units, event.atMs);
    // A refusal makes a counter live on: a longer window must not see its count vanish at the old end.
    else if (event.kind === "refused")
      world.endsAtMs = Math.max(world.endsAtMs, world.emptyAt(event.policy, event.atMs));
    else world.giveBack(event.units);
  }
  world.expire(nowMs);
  return Math.floor(world.room(policy, nowMs));
}

export function isBucket({ stored }: Policy): boolean {
  return stored === "token-bucket" || stored === "gcra";
}

interface World {
  endsAtMs: number;
  expire(nowMs: number): void;
  charge(policy: Policy, units: number, atMs: number): void;
  giveBack(units: number): void;
  emptyAt(policy: Policy, nowMs: number): number;
  room(policy: Policy, nowMs: number): number;
}

class Bucket implements World {
  endsAtMs = 0;
  #missing = 0;
  #lastMs = 0;
  #scaleMs = 1;

  expire(nowMs: number): void {
    if (nowMs > this.endsAtMs) this.#missing = 0;
  }

  charge(policy: Policy, units: number, atMs: number): void {
    const { amount, scaleMs } = bucket(policy);
    this.#missing = this.#missingAt(policy, atMs) + units * scaleMs;
    this.#lastMs = atMs;
    this.#scaleMs = scaleMs;
    this.endsAtMs = atMs + Math.ceil(this.#missing / amount);
  }

  giveBack(units: number): void {
    this.#missing = Math.max(0, this.#missing - units * this.#scaleMs);
  }

  emptyAt(policy: Policy, nowMs: number): number {
    return nowMs + Math.ceil(this.#missingAt(policy, nowMs) / bucket(policy).amount);
  }

  room(policy: Policy, nowMs: number): number {
    const { capacity, scaleMs } = bucket(policy);
    return (capacity * scaleMs - this.#missingAt(policy, nowMs)) / scaleMs;
  }

  /** In the unit of a policy, rounded up as the counters do: a rounding of the oracle's own would let single units pass. */
  #missingAt(policy: Policy, atMs: number): number {
    const { amount, scaleMs } = bucket(policy);
    const missing = scaleMs === this.#scaleMs ? this.#missing : Math.ceil((this.#missing / this.#scaleMs) * scaleMs);
    return Math.max(0, missing - (atMs - this.#lastMs) * amount);
  }
}

class Rolling implements World {
  endsAtMs = 0;
  #entries: { atMs: number; units: number }[] = [];

  expire(nowMs: number): void {
    if (nowMs > this.endsAtMs) this.#entries = [];
  }

  charge(policy: Policy, units: number, atMs: number): void {
    this.#entries = [...this.#live(policy, atMs), { atMs, units }];
    this.endsAtMs = atMs + windowOf(policy);
  }

  giveBack(): void {
    throw new Error("windows give the newest back, whoever charged them");
  }

  emptyAt(policy: Policy, nowMs: number): number {
    return Math.max(nowMs, ...this.#live(policy, nowMs).map(({ atMs }) => atMs + windowOf(policy)));
  }

  room(policy: Policy, nowMs: number): number {
    return policy.limit - this.#live(policy, nowMs).reduce((sum, { units }) => sum + units, 0);
  }

  #live(policy: Policy, nowMs: number): { atMs: number; units: number }[] {
    return this.#entries.filter(({ atMs }) => atMs > nowMs - windowOf(policy));
  }
}

/** The window that holds the last charge, and for a sliding counter the one before: which these are depends on who looks. */
class Cells implements World {
  endsAtMs = 0;
  #previous = 0;
  #current = 0;
  #lastMs = 0;

  expire(nowMs: number): void {
    if (nowMs > this.endsAtMs) {
      this.#previous = 0;
      this.#current = 0;
    }
  }

  charge(policy: Policy, units: number, atMs: number): void {
    const { previous, current } = this.#at(policy, atMs);
    this.#previous = previous;
    this.#current = current + units;
    this.#lastMs = atMs;
    this.endsAtMs = this.emptyAt(policy, atMs);
  }

  giveBack(): void {
    throw new Error("windows give the newest back, whoever charged them");
  }

  emptyAt(policy: Policy, nowMs: number): number {
    const { previous, current } = this.#at(policy, nowMs);
    const endMs = nowMs - (nowMs % windowOf(policy)) + windowOf(policy);
    if (policy.stored === "fixed-window") return current > 0 ? endMs : nowMs;
    return current > 0 ? endMs + windowOf(policy) : previous > 0 ? endMs : nowMs;
  }

  room(policy: Policy, nowMs: number): number {
    const { previous, current } = this.#at(policy, nowMs);
    if (policy.stored === "fixed-window") return policy.limit - current;
    const windowMs = windowOf(policy);
    return (policy.limit * windowMs - previous * (windowMs - (nowMs % windowMs)) - current * windowMs) / windowMs;
  }

  #at(policy: Policy, atMs: number): { previous: number; current: number } {
    const windowMs = windowOf(policy);
    const movedMs = atMs - (atMs % windowMs) - (this.#lastMs - (this.#lastMs % windowMs));
    if (movedMs === 0) return { previous: this.#previous, current: this.#current };
    return { previous: movedMs === windowMs ? this.#current : 0, current: 0 };
  }
}

function bucket(policy: Policy): { amount: number; scaleMs: number; capacity: number } {
  if (!("capacity" in policy)) throw new Error(`${policy.stored} is no bucket`);
  return policy;
}

function windowOf(policy: Policy): number {
  return (policy as FixedWindowPolicy).windowMs;
}
