/**
 * A bounded sample of refusals with their attributes, for a key's page: one quarter hour at a time, on the path of refused requests.
 * Per key at most one refusal a second and the last five of the quarter hour; 100 a second and 300 a quarter hour in total. A flooding
 * client does not displace others: the key that was refused longest ago is evicted first.
 * With `hidden`, attribute values are not stored, only a digest of the key to find it by.
 */
import { createHash } from "node:crypto";
import type { DecidedRequest, Decision } from "sluice";
import { cutValue } from "../top-keys/cut-values.js";

export type RefusalValues = "shown" | "hidden" | "off";

export interface LoggedRefusal {
  readonly atMs: number;
  readonly rule: string;
  readonly reason: string;
  /** Digest of the rule and the values of its key attributes. */
  readonly digest: string;
  /** Truncated; with `hidden` the names only, each with an empty value. */
  readonly attributes: Readonly<Record<string, string>>;
}

const PER_KEY = 5;
const PER_SECOND = 100;
const PER_QUARTER = 300;
const MOST_ATTRIBUTES = 12;
const LONGEST_NAME = 64;
const LONGEST_VALUE = 80;

interface OfKey {
  readonly refusals: LoggedRefusal[];
  second: number;
}

export class RefusalLog {
  readonly #values: RefusalValues;
  readonly #keyAttributes: (rule: string) => readonly string[];
  readonly #now: () => number;
  /** By counter key, least recently refused first. */
  #byKey = new Map<string, OfKey>();
  #kept = 0;
  #second = 0;
  #inSecond = 0;

  constructor(
    keyAttributes: (rule: string) => readonly string[],
    values: RefusalValues,
    now: () => number = () => Date.now(),
  ) {
    this.#keyAttributes = keyAttributes;
    this.#values = values;
    this.#now = now;
  }

  get values(): RefusalValues {
    return this.#values;
  }

  add({ allowed, checks }: Decision, request: DecidedRequest): void {
    if (allowed || this.#values === "off") return;
    const atMs = this.#now();
    const second = Math.floor(atMs / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#inSecond = 0;
    }
    for (let i = 0; i < checks.length && this.#inSecond < PER_SECOND; i++) {
      const check = checks[i]!;
      if (check.allowed || check.mode !== "enforce") continue;
      // A load-shedding rule has no counter: use the rule as the key.
      const key = request.checks[i]?.key ?? check.rule;
      const known = this.#byKey.get(key);
      if (known?.second === second) continue;
      this.#note(key, known, {
        atMs,
        rule: check.rule,
        reason: check.reason ?? "limit",
        digest: keyDigest(check.rule, this.#keyAttributes(check.rule), request.attributes),
        attributes: this.#shown(request.attributes),
      });
    }
  }

  #note(key: string, known: OfKey | undefined, refusal: LoggedRefusal): void {
    const of = known ?? { refusals: [], second: 0 };
    of.second = this.#second;
    this.#inSecond++;
    of.refusals.push(refusal);
    this.#kept++;
    if (of.refusals.length > PER_KEY) {
      of.refusals.shift();
      this.#kept--;
    }
    // Reinsert at the end of the order.
    this.#byKey.delete(key);
    this.#byKey.set(key, of);
    while (this.#kept > PER_QUARTER) {
      const [oldest, { refusals }] = this.#byKey.entries().next().value!;
      this.#byKey.delete(oldest);
      this.#kept -= refusals.length;
    }
  }

  #shown(attributes: DecidedRequest["attributes"]): Record<string, string> {
    const entries = Object.entries(attributes)
      .filter(([, value]) => value !== undefined)
      .slice(0, MOST_ATTRIBUTES)
      .map(([name, value]) => [
        name.slice(0, LONGEST_NAME),
        this.#values === "hidden" ? "" : cutValue(value, LONGEST_VALUE),
      ]);
    return Object.fromEntries(entries);
  }

  /** The refusals of the quarter hour so far, newest first. */
  quarter(): readonly LoggedRefusal[] {
    return [...this.#byKey.values()].flatMap(({ refusals }) => refusals).sort((a, b) => b.atMs - a.atMs);
  }

  endQuarter(): void {
    this.#byKey = new Map();
    this.#kept = 0;
  }
}

/** The same for the same rule and key values, whatever else a request contains. */
export function keyDigest(
  rule: string,
  names: readonly string[],
  attributes: Readonly<Record<string, unknown>>,
): string {
  const values = names.map((name) => [name, String(attributes[name])]);
  return createHash("sha256")
    .update(JSON.stringify([rule, values]))
    .digest("base64url")
    .slice(0, 16);
}
