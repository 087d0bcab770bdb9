/**
 * Serialises a decision to JSON, for the route that answers thousands per second: the fields of the schema `decision`, in ASCII only.
 * Written by hand, because a generated serialiser costs more than the decision: it must handle strings that need escaping, which cannot
 * occur here (the names of rules, variants and leases are restricted). A test compares it with the schema's serialisation.
 * The text shared by all passing checks of a rule is cached, as joining many small pieces is the main cost.
 */
import type { CheckResult, Decision, Explanation } from "sluice";

export function decisionText(made: Decision): string {
  const { rule, reason, violated, checks, lease, reservation, degraded } = made;
  let text = made.allowed ? '{"allowed":true' : '{"allowed":false';
  if (rule !== undefined) text += `,"rule":"${rule}","limit":${made.limit},"remaining":${made.remaining}`;
  if (made.debt !== undefined) text += `,"debt":${made.debt}`;
  text += `,"retryAfterMs":${made.retryAfterMs},"resetAfterMs":${made.resetAfterMs},"delayMs":${made.delayMs}`;
  if (reason !== undefined) text += `,"reason":"${reason}"`;
  if (violated.length > 0) text += `,"violated":["${violated.join('","')}"]`;
  text += closing(made);
  for (let i = 0; i < checks.length; i++) text += i === 0 ? checkText(checks[i]!) : `,${checkText(checks[i]!)}`;
  if (lease !== undefined) text += `],"lease":{"id":"${lease.id}","expiresAfterMs":${lease.expiresAfterMs}}`;
  else text += "]";
  if (reservation !== undefined) text += `,"reservation":${JSON.stringify(reservation)}`;
  return degraded === undefined ? `${text}}` : `${text},"degraded":"${degraded}"}`;
}

export function explanationText({ decision, rules, more }: Explanation): string {
  const made = decisionText(decision);
  const text = `${made.slice(0, -1)},"decision":${made},"rules":${JSON.stringify(rules)}`;
  return more === undefined ? `${text}}` : `${text},"more":${more}}`;
}

/** Caches the end of the last text of this kind: it stays the same until the rules change. */
const lastClosing = { rulesVersion: -1, guarantee: "", text: "" };

function closing({ violated, rulesVersion, guarantee }: Decision): string {
  if (rulesVersion !== lastClosing.rulesVersion || guarantee !== lastClosing.guarantee) {
    lastClosing.rulesVersion = rulesVersion;
    lastClosing.guarantee = guarantee;
    lastClosing.text = `,"rulesVersion":${rulesVersion},"guarantee":"${guarantee}","checks":[`;
  }
  return violated.length > 0 ? lastClosing.text : `,"violated":[]${lastClosing.text}`;
}

interface Opening {
  readonly mode: string;
  readonly limit: number;
  readonly text: string;
}

/** Cached starts of passing checks, by rule. Cleared when full. */
const openings = new Map<string, Opening>();
const MOST_OPENINGS = 10_000;

function checkText(check: CheckResult): string {
  const { remaining, debt, retryAfterMs, resetAfterMs, reason, variant, delayMs } = check;
  const isPlain = variant === undefined && reason === undefined && debt === undefined && delayMs === undefined;
  if (check.allowed && retryAfterMs === 0 && isPlain) {
    return `${openingOf(check)}${remaining},"retryAfterMs":0,"resetAfterMs":${resetAfterMs}}`;
  }
  const numbers = `"remaining":${remaining},"retryAfterMs":${retryAfterMs},"resetAfterMs":${resetAfterMs}`;
  let text = `{"rule":"${check.rule}","mode":"${check.mode}","allowed":${check.allowed},"limit":${check.limit},${numbers}`;
  if (debt !== undefined) text += `,"debt":${debt}`;
  if (reason !== undefined) text += `,"reason":"${reason}"`;
  if (variant !== undefined) text += `,"variant":"${variant}"`;
  if (delayMs !== undefined) text += `,"delayMs":${delayMs}`;
  return `${text}}`;
}

function openingOf({ rule, mode, limit }: CheckResult): string {
  const known = openings.get(rule);
  if (known !== undefined && known.mode === mode && known.limit === limit) return known.text;
  const text = `{"rule":"${rule}","mode":"${mode}","allowed":true,"limit":${limit},"remaining":`;
  if (openings.size >= MOST_OPENINGS) openings.clear();
  openings.set(rule, { mode, limit, text });
  return text;
}
