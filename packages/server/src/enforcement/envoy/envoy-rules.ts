/**
 * Converts Envoy's limits to library rules, so that one limiter decides them in one atomic step together with Sluice's own rules.
 * Such a rule matches only a request part whose `envoy.limit` is its id, and counts by `envoy.v`; only `should-rate-limit.ts` sets these.
 * Its id is derived from the limit's position in the files, not from its numbers, so counters survive a changed limit.
 */
import { createHash } from "node:crypto";
import type { Rule } from "sluice";
import { type Limit, type Unit, unitSeconds } from "./descriptor-config.js";
import { counterOf, type Entry, type Found, type PlacedLimit } from "./limit-tree.js";

export const LIMIT_ATTRIBUTE = "envoy.limit";
/** Short, because it is part of every counter's key. */
export const COUNTER_ATTRIBUTE = "envoy.v";

/** Cached per limit: a digest costs more than a decision. */
const ruleIds = new WeakMap<PlacedLimit, string>();

export function ruleIdOf(placed: PlacedLimit): string {
  let id = ruleIds.get(placed);
  if (id === undefined) {
    id = spellRuleId(placed);
    ruleIds.set(placed, id);
  }
  return id;
}

/** `envoy.<domain>.<keys>-<hash>`: the first part is for humans, the hash keeps `a`+`b_c` and `a_b`+`c` apart. */
function spellRuleId({ domain, path }: PlacedLimit): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([domain, ...path.map(({ key, value }) => [key, value])]))
    .digest("hex");
  const words = [domain, ...path.map(({ key, value }) => (value === "" ? key : `${key}_${value}`))];
  const readable = words.map((word) => word.toLowerCase().replaceAll(/[^a-z0-9_-]+/g, "_")).join(".");
  return `envoy.${readable.slice(0, 47)}-${digest.slice(0, 10)}`;
}

/** The name shown to people: the limit's own, or its position. */
export function displayName({ limit, domain, path }: PlacedLimit): string {
  return limit.name ?? [domain, ...path.map(({ key, value }) => (value === "" ? key : `${key}_${value}`))].join(".");
}

/** Undefined for a limit that needs no counter. */
export function ruleOf(placed: PlacedLimit): Rule | undefined {
  const { limit } = placed;
  if (limit.unlimited) return undefined;
  const { onStoreFailure, ...numbers } = limit.extra;
  const id = ruleIdOf(placed);
  return {
    id,
    description: `Envoy: ${displayName(placed)}`.slice(0, 1000),
    match: { [LIMIT_ATTRIBUTE]: id },
    key: [COUNTER_ATTRIBUTE],
    algorithm: "fixed-window",
    ...windowOf(limit),
    ...numbers,
    limit: countableLimit(limit.requestsPerUnit),
    // A used-up quota refuses only if all the others are used up too, so it is evaluated here in shadow mode and the caller decides.
    mode: placed.shadow || placed.quota ? "shadow" : "enforce",
    ...(onStoreFailure !== undefined && { onStoreFailure }),
  } as unknown as Rule;
}

/**
 * Whether a rule can match only the request part that names it. `ruleOf` makes such rules; any other rule of this shape behaves the same.
 */
export function isEnvoyRule({ id, match = {}, key }: Rule): boolean {
  return match[LIMIT_ATTRIBUTE] === id && key.length === 1 && key[0] === COUNTER_ATTRIBUTE;
}

function windowOf({ unit }: Limit): { window?: string } {
  return unit === "" ? {} : { window: `${unitSeconds[unit]}s` };
}

/** A rule must allow at least 1. A limit of 0 is refused through its cost: see `BLOCKING_COST`. */
function countableLimit(requestsPerUnit: number): number {
  return Math.max(1, requestsPerUnit);
}

/** Minimum cost of a request under a limit of 0: more than the rule's 1, so it is refused. */
export const BLOCKING_COST = 2;

export interface Override {
  readonly unit: Unit;
  readonly requestsPerUnit: number;
  /** The rule whose counters it uses: the configured limit, or a rule per unit. */
  readonly ruleId: string;
  /** The caller decides it together with the other quotas. */
  readonly quota: boolean;
}

interface AskedOf {
  readonly domain: string;
  readonly entries: readonly Entry[];
}

interface OverrideCounter {
  readonly ruleId: string;
  readonly counter: string;
}

/** The counter of an override: shared with the configured limit of the same descriptor if windows match, otherwise one per unit. */
export function overrideCounter(unit: Unit, found: Found | undefined, asked: AskedOf): OverrideCounter {
  if (found !== undefined && countsInWindowsOf(found.placed, unit)) {
    return { ruleId: ruleIdOf(found.placed), counter: found.counter };
  }
  return { ruleId: `envoy.request-override.${unit}`, counter: counterOf(asked.domain, asked.entries) };
}

function countsInWindowsOf({ limit, shared }: PlacedLimit, unit: Unit): boolean {
  return limit.unit === unit && !limit.unlimited && !shared && Object.keys(limit.extra).length === 0;
}

/** The rule for a limit that a request carries. */
export function overrideRule({ unit, requestsPerUnit, ruleId, quota }: Override): Rule {
  return {
    id: ruleId,
    description: `Envoy: limits that requests bring, per ${unit}`,
    key: [COUNTER_ATTRIBUTE],
    algorithm: "fixed-window",
    limit: countableLimit(requestsPerUnit),
    window: `${unitSeconds[unit]}s`,
    mode: quota ? "shadow" : "enforce",
  };
}
