/**
 * A decision as JSON, for the route that answers thousands a second: the fields of the schema `decision`, in ASCII only.
 * By hand, because a serialiser made from the schema costs more than the decision: it must allow for texts that need escaping, and here none
 * can come (rules, variants and leases have names without such letters). A test compares it with the schema's own.
 * The text that all passing checks of a rule share is cached: joining many small pieces is the cost.
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

/** The closing of the last decision of its kind: until the rules change, it is that of the next. */
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

/** Of checks that passed, by rule. When full, all is forgotten at once. */
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
