/**
 * Envoy's limits as rules of the library, so that one limiter decides them, in one atomic step, beside Sluice's own rules.
 * A rule applies to a request part that names it in `envoy.limit`, and counts by `envoy.descriptor`; only `should-rate-limit.ts` writes these.
 * A rule's id comes from the limit's place in the files, not from its numbers: counters live on when a limit changes.
 */
import { createHash } from "node:crypto";
import type { Rule } from "sluice";
import { type Limit, type Unit, unitSeconds } from "./descriptor-config.js";
import type { PlacedLimit } from "./limit-tree.js";

export const LIMIT_ATTRIBUTE = "envoy.limit";
export const COUNTER_ATTRIBUTE = "envoy.descriptor";

/** Spelled once per limit: a digest costs more than a decision. */
const ruleIds = new WeakMap<PlacedLimit, string>();

export function ruleIdOf(placed: PlacedLimit): string {
  let id = ruleIds.get(placed);
  if (id === undefined) {
    id = spellRuleId(placed);
    ruleIds.set(placed, id);
  }
  return id;
}

/** `envoy.<domain>.<keys>-<hash>`: the first part is for people, the hash keeps `a`+`b_c` and `a_b`+`c` apart. */
function spellRuleId({ domain, path }: PlacedLimit): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([domain, ...path.map(({ key, value }) => [key, value])]))
    .digest("hex");
  const words = [domain, ...path.map(({ key, value }) => (value === "" ? key : `${key}_${value}`))];
  const readable = words.map((word) => word.toLowerCase().replaceAll(/[^a-z0-9_-]+/g, "_")).join(".");
  return `envoy.${readable.slice(0, 47)}-${digest.slice(0, 10)}`;
}

/** How people know a limit: its own name, or its place. */
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
    // A quota that is used up refuses only together with the others; so it is looked at here and judged by the caller.
    mode: placed.shadow || placed.quota ? "shadow" : "enforce",
    ...(onStoreFailure !== undefined && { onStoreFailure }),
  } as unknown as Rule;
}

/** Whether a rule can meet nothing but the part of a request that names it: `ruleOf` makes such rules, and no other would be told apart. */
export function isEnvoyRule({ id, match = {}, key }: Rule): boolean {
  return match[LIMIT_ATTRIBUTE] === id && key.length === 1 && key[0] === COUNTER_ATTRIBUTE;
}

function windowOf({ unit }: Limit): { window?: string } {
  return unit === "" ? {} : { window: `${unitSeconds[unit]}s` };
}

/** A rule admits at least 1. A limit of 0 refuses by its cost: see `BLOCKING_COST`. */
function countableLimit(requestsPerUnit: number): number {
  return Math.max(1, requestsPerUnit);
}

/** The least cost of a request under a limit of 0: more than the rule's 1, so that it is refused. */
export const BLOCKING_COST = 2;

export interface Override {
  readonly unit: Unit;
  readonly requestsPerUnit: number;
  /** The owner of its counters: the files' limit, or its unit. */
  readonly ruleId: string;
  /** Judged by the caller, together with the others. */
  readonly quota: boolean;
}

/** The rule whose counters an override shares with the files' limit that the same descriptor meets; else its unit's own. */
export function overrideRuleId(unit: Unit, placed: PlacedLimit | undefined): string {
  const shares = placed !== undefined && countsInWindowsOf(placed, unit);
  return shares ? ruleIdOf(placed) : `envoy.request-override.${unit}`;
}

function countsInWindowsOf({ limit, shared }: PlacedLimit, unit: Unit): boolean {
  return limit.unit === unit && !limit.unlimited && !shared && Object.keys(limit.extra).length === 0;
}

/** The rule of a limit that a request brings. */
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
