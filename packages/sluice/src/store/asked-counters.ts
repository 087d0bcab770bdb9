/**
 * Whether a request whose id was seen before asks for the same counters as the first one: an id names one request under one set of rules.
 * In: rules version and checks of both. Out: whether the later one is a repeat. Pure.
 *
 * Two limiters on one store may get the same id, each with its own rules: the decision of one must not stand in for the other's, whose
 * counters would never be charged. But rules are edited while clients retry, and a retry is no mistake. The version of the rules
 * distinguishes the two cases (docs/decisions/0015).
 */
import { createHash } from "node:crypto";
import type { Receipt, StoreRequest } from "./store.js";

type First = Pick<Receipt, "rulesVersion" | "checks">;
type Asked = Pick<StoreRequest, "rulesVersion" | "versionIsLocal" | "checks">;

/** What is kept about a request's counters where its checks are not stored: under the id alone, on a cluster. */
export interface AskedCounters {
  /** Over the rules and their keys, without what an edit of numbers changes. */
  readonly digest: string;
  readonly rulesVersion: number;
  /** Not stored: only the later request's matters. */
  readonly versionIsLocal?: boolean | undefined;
  readonly rules: readonly string[];
}

const DIGEST_LENGTH = 22;

/** Under the same rules: the same counters. Under an older or newer version: at least one rule of the first request is still asked. */
export function isRepeat(later: Asked, first: First): boolean {
  if (asksTheSame(later, first)) return true;
  return mayBeEdited(later, first) && sharesOne(rulesOf(later), rulesOf(first));
}

/** The same rules but other counters: for parts of a request, which alone cannot tell what else was asked. */
export function isOthers(later: Asked, first: First): boolean {
  return !mayBeEdited(later, first) && !asksTheSame(later, first);
}

export function askedCounters(asked: Asked): AskedCounters {
  const hash = createHash("sha256").update(JSON.stringify(countersOf(asked)));
  const digest = hash.digest("base64url").slice(0, DIGEST_LENGTH);
  const { rulesVersion, versionIsLocal } = asked;
  return { digest, rulesVersion, versionIsLocal, rules: rulesOf(asked) };
}

/** Like `isRepeat`. */
export function isRepeatOf(later: AskedCounters, first: AskedCounters): boolean {
  if (later.digest === first.digest) return true;
  return mayBeEdited(later, first) && sharesOne(later.rules, first.rules);
}

type Versioned = Pick<AskedCounters, "rulesVersion" | "versionIsLocal">;

function mayBeEdited(later: Versioned, first: Versioned): boolean {
  return later.versionIsLocal === true || later.rulesVersion !== first.rulesVersion;
}

function asksTheSame({ checks: later }: First, { checks: first }: First): boolean {
  if (later.length === first.length && later.every(({ key }, i) => key === first[i]!.key)) return true;
  const [a, b] = [countersOf({ checks: later }), countersOf({ checks: first })];
  return a.length === b.length && a.every((name, i) => name === b[i]);
}

/** Rule and key of each counter, sorted. Keys are without the letter, because an edit may change how a rule counts. */
function countersOf({ checks }: Pick<Asked, "checks">): string[] {
  return [...new Set(checks.map(({ key }) => key.slice(0, key.lastIndexOf(":"))))].sort();
}

function rulesOf({ checks }: First): string[] {
  return [...new Set(checks.map(({ plan }) => plan.rule))];
}

function sharesOne(some: readonly string[], others: readonly string[]): boolean {
  return some.some((rule) => others.includes(rule));
}
