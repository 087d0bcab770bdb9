/**
 * The reservations of a world, as the store made them: each is settled once, at the cost that was told; until then, and after its end,
 * what it holds stands. Kept naively, reservation by reservation, so that the sum of what was settled and of what stands can be held
 * against the store's counters.
 * In: what the store did. Out: the mistake, or undefined. Pure.
 */
import type { Settlement } from "../../packages/sluice/src/decision.js";
import {
  type Amounts,
  type ExtendReply,
  REMEMBER_HOLD_MS,
  type Reserved,
  type SettleReply,
} from "../../packages/sluice/src/store/reserved.js";

interface Held {
  readonly ttlMs: number;
  endsAtMs: number;
  /** By counter, in the order of the reservation. */
  held: readonly number[];
  charged: readonly number[] | undefined;
}

export class Settlements {
  readonly #byName = new Map<string, Held>();
  /** What stands on each counter, by the name of its entries. */
  readonly #standing = new Map<string, Map<string, number>>();
  /** Those whose cost a client has told. */
  readonly #told = new Set<string>();
  settled = 0;

  /** A charge of any kind; of a reservation, what it holds. */
  charged(key: string, entryId: string, units: number): void {
    const standing = this.#standing.get(key) ?? new Map<string, number>();
    this.#standing.set(key, standing.set(entryId, units));
  }

  unitsOf(key: string, entryId: string): number {
    return this.#standing.get(key)?.get(entryId) ?? 0;
  }

  /** What is counted under a key in all. */
  sumOf(key: string): number {
    let sum = 0;
    for (const units of this.#standing.get(key)?.values() ?? []) sum += units;
    return sum;
  }

  open(entryId: string, hold: { ttlMs: number; held: readonly number[]; nowMs: number }): void {
    const { ttlMs, held, nowMs } = hold;
    this.#byName.set(entryId, { ttlMs, endsAtMs: nowMs + ttlMs, held, charged: undefined });
  }

  extended({ counters }: Reserved, { state, held, verdicts, nowMs }: ExtendReply): string | undefined {
    const name = counters[0]!.entryId;
    const known = this.#byName.get(name);
    if (state !== "open") return this.#mistakenState(name, state, nowMs);
    if (known === undefined || known.charged !== undefined || nowMs >= known.endsAtMs)
      return `${name} was extended, and is not open`;
    if (held.some((units, i) => units < known.held[i]!)) return `${name} holds less after an extension`;
    known.held = held;
    for (const [i, { key }] of counters.entries()) this.charged(key, name, held[i]!);
    // One that passed begins the term anew.
    if (counters.every(({ mode }, i) => mode !== "enforce" || verdicts[i]!.allowed))
      known.endsAtMs = nowMs + known.ttlMs;
    return undefined;
  }

  settle(
    { counters }: Reserved,
    amounts: Amounts,
    { reply, nowMs }: { reply: SettleReply; nowMs: number },
  ): string | undefined {
    const name = counters[0]!.entryId;
    const known = this.#byName.get(name);
    const { state } = reply.counters[0]!;
    if (state !== "settled") return this.#mistakenState(name, state, nowMs);
    if (known === undefined) return `${name} was settled, and never held`;
    const charged = reply.counters.map((counter) => counter.charged);
    if (!reply.isNew) {
      const same = known.charged?.every((units, i) => units === charged[i]);
      return same ? undefined : `${name} was settled at ${known.charged}, and answers ${charged}`;
    }
    if (known.charged !== undefined) return `${name} was settled twice`;
    if (nowMs >= known.endsAtMs) return `${name} was settled after its end`;
    for (const [i, { cost, key }] of counters.entries()) {
      const actual = amounts.get(cost) ?? known.held[i]!;
      if (charged[i] !== actual) return `${name} cost ${actual}, and was charged ${charged[i]} under ${key}`;
      this.charged(key, name, actual);
    }
    known.charged = charged;
    this.settled++;
    return undefined;
  }

  #mistakenState(name: string, state: string, nowMs: number): string | undefined {
    const known = this.#byName.get(name);
    if (known === undefined) return state === "unknown" ? undefined : `${name} is ${state}, and was never held`;
    const isOver = nowMs >= known.endsAtMs;
    const isForgotten = nowMs >= known.endsAtMs + REMEMBER_HOLD_MS;
    const found = known.charged !== undefined ? "settled" : isOver ? "expired" : "open";
    if (state === found || (state === "unknown" && isForgotten)) return undefined;
    return `${name} is ${found}, and the store says ${state}`;
  }

  tell(name: string): void {
    this.#told.add(name);
  }

  /** What a client was answered is what the store did. */
  answered(name: string, rules: readonly string[], { settled, charged }: Settlement): string | undefined {
    if (!settled) return undefined;
    const known = this.#byName.get(name)?.charged;
    if (known === undefined) return `a client heard that ${name} is settled, and it is not`;
    const wrong = rules.find((rule, i) => charged[rule] !== known[i]);
    return wrong === undefined
      ? undefined
      : `a client heard that ${name} cost ${JSON.stringify(charged)}, and it was ${known}`;
  }

  /** An instance reports that nobody settled it. */
  expired(name: string): string | undefined {
    const known = this.#byName.get(name);
    return known?.charged === undefined ? undefined : `${name} was reported as expired, and is settled`;
  }

  /** Told, and neither settled nor given up. */
  unsettled(): string[] {
    return [...this.#told].filter((name) => this.#byName.get(name)?.charged === undefined && this.#byName.has(name));
  }

  wiped(): void {
    this.#byName.clear();
    this.#standing.clear();
  }
}
