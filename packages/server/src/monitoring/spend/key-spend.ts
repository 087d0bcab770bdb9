/**
 * The biggest spenders, in the units that rules declare (`unit: tokens`): a quarter hour at a time, one bounded sketch per unit, because
 * tokens and microdollars are not comparable. In: decisions and settlements. A cost known only afterwards is counted when it is settled; if
 * it never is, the held amount is counted. Refunds are not subtracted: the sketch only grows.
 */
import { type DecidedRequest, type Decision, type Limiter, readCounterKey, type Settlement } from "sluice";
import { reservedCounters } from "sluice/internal";
import { ownField } from "../../own-fields.js";
import { cutKey } from "../top-keys/cut-values.js";
import { FrequentItems, type Item } from "../top-keys/frequent-items.js";
import type { KeyList } from "../top-keys/key-summary.js";

/** Units tracked; those of later rules are not counted. */
const MOST_UNITS = 8;
const TABLE = 500;
/** Keys per unit in a published text. */
const KEPT = 200;

interface Spender extends Item {
  /** Truncated; set if the key contains only their digest. */
  readonly attributes: Record<string, string> | undefined;
}

type Rules = Pick<Limiter, "rules">;

export class KeySpend {
  readonly #limiter: Rules;
  #known: Limiter["rules"] = [];
  #units = new Map<string, { unit: string; key: readonly string[] }>();
  #byUnit = new Map<string, FrequentItems<Spender>>();
  /** Units spent by rule since the start; they only grow. */
  readonly #byRule = new Map<string, number>();

  constructor(limiter: Rules) {
    this.#limiter = limiter;
  }

  watch(limiter: Pick<Limiter, "on">): void {
    limiter.on("settled", (id, { charged }) => this.#addReserved(id, charged));
    limiter.on("expired", (id, held) => this.#addReserved(id, held));
  }

  add({ allowed, checks, reservation }: Decision, request: DecidedRequest): void {
    if (!allowed || this.#unitsNow().size === 0) return;
    for (let i = 0; i < checks.length; i++) {
      const { rule, mode } = checks[i]!;
      const counter = request.checks[i];
      if (mode === "candidate" || counter === undefined || ownField(reservation?.held, rule) !== undefined) continue;
      this.#spend({ rule, key: counter.key, units: counter.cost, attributes: request.attributes });
    }
  }

  /** The quarter hour so far, by unit. */
  quarter(): Record<string, KeyList> {
    return Object.fromEntries(Array.from(this.#byUnit, ([unit, items]) => [unit, listOf(items)]));
  }

  endQuarter(): void {
    this.#byUnit = new Map();
  }

  byRule(): Iterable<[rule: string, units: number]> {
    return this.#byRule;
  }

  #addReserved(id: string, units: Settlement["charged"]): void {
    if (this.#unitsNow().size === 0) return;
    for (const { rule, mode, key } of reservedCounters(id)) {
      const spent = ownField(units, rule) ?? 0;
      if (mode === "candidate" || !(spent > 0)) continue;
      this.#spend({ rule, key, units: spent, attributes: undefined });
    }
  }

  #spend({ rule, key, units, attributes }: Spent): void {
    const named = this.#units.get(rule);
    if (named === undefined || !(units > 0)) return;
    this.#byRule.set(rule, (this.#byRule.get(rule) ?? 0) + units);
    const { unit } = named;
    let items = this.#byUnit.get(unit);
    if (items === undefined) {
      if (this.#byUnit.size >= MOST_UNITS) return;
      items = new FrequentItems(TABLE);
      this.#byUnit.set(unit, items);
    }
    // Drop the last letter, which encodes the stored form: the key stays the same if its rule's algorithm changes.
    const name = key.slice(0, -1);
    const item = items.find(name);
    if (item !== undefined) item.count += units;
    else items.insert(name, { count: units, attributes: attributes && shortened(name, named.key, attributes) });
  }

  /** The units of the rules in force. Most have none: then nothing is counted. */
  #unitsNow(): ReadonlyMap<string, unknown> {
    const { rules } = this.#limiter;
    if (rules !== this.#known) {
      this.#known = rules;
      this.#units = new Map();
      for (const { id, unit, key } of rules) if (unit !== undefined) this.#units.set(id, { unit, key });
      for (const rule of this.#byRule.keys()) if (!this.#units.has(rule)) this.#byRule.delete(rule);
    }
    return this.#units;
  }
}

interface Spent {
  readonly rule: string;
  readonly key: string;
  readonly units: number;
  /** Undefined if only the key is known. */
  readonly attributes: DecidedRequest["attributes"] | undefined;
}

/** Only if the key does not contain the values. */
function shortened(
  key: string,
  names: readonly string[],
  attributes: DecidedRequest["attributes"],
): Record<string, string> | undefined {
  if (readCounterKey(key).attributes !== undefined) return undefined;
  return cutKey(names, attributes);
}

function listOf(items: FrequentItems<Spender>): KeyList {
  const { items: found, offset, absent } = items.top(KEPT);
  return {
    absent,
    items: found.map(([key, { count, attributes }]) => ({
      key,
      count,
      error: offset,
      refused: 0,
      peak: 0,
      ...(attributes && { attributes }),
    })),
  };
}
