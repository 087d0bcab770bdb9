/**
 * Detects a key that was not heavy before and now makes up much of a rule's traffic in the last hour. In: the top keys with their error
 * bound, each rule's checks in that hour, and the keys that were heavy before. Out: findings, and the keys to remember. Pure.
 * Warm-up: for an hour after the history starts, heavy keys are learned and not reported.
 */
import { createHash } from "node:crypto";
import type { TopKeysView } from "../views/keys.js";
import { type Finding, figure, percent, subjectOf } from "./finding.js";

/** When a key was first heavy, by its digest: keys contain user data, and a digest is enough to recognise them. */
export type KnownKeys = ReadonlyMap<string, { readonly firstMs: number; readonly lastMs: number }>;

interface HeavyKeyInput {
  readonly top: Pick<TopKeysView, "maxError" | "keys">;
  /** Checks in the last hour, by rule. */
  readonly checksOf: (rule: string) => number;
  readonly known: KnownKeys;
  readonly knownMinutes: number;
  readonly nowMs: number;
  /** The share from which a rule's key is heavy; undefined: a fifth. */
  readonly heavyShareOf?: (rule: string) => number | undefined;
}

const HEAVY_SHARE = 0.2;
/** Fraction of the heavy share at which an alert still holds. */
const HOLD_PART = 0.5;
const LEAST_CHECKS = 1_000;
const WARM_UP_MINUTES = 60;
/** How long a key counts as new, and so its alert lasts. */
const NEW_FOR_MS = 3_600_000;
const REMEMBER_MS = 8 * 24 * 3_600_000;
const MOST_KNOWN = 1_000;

export function newHeavyKeys({ top, checksOf, known, knownMinutes, nowMs, heavyShareOf }: HeavyKeyInput): {
  findings: Finding[];
  known: KnownKeys;
} {
  const findings: Finding[] = [];
  const remembered = new Map([...known].filter(([, { lastMs }]) => nowMs - lastMs < REMEMBER_MS));
  for (const { rule, attributes, count, refused } of top.keys) {
    // A rule that counts everything together has a single key, which is always heavy.
    if (Object.keys(attributes).length === 0) continue;
    // The sketch may overestimate: use the guaranteed part.
    const certain = count - top.maxError;
    const share = certain / Math.max(1, checksOf(rule));
    const heavy = heavyShareOf?.(rule) ?? HEAVY_SHARE;
    if (certain < LEAST_CHECKS || share < heavy * HOLD_PART) continue;
    const digest = digestOf(rule, attributes);
    const before = remembered.get(digest);
    if (before === undefined && share < heavy) continue;
    // A key that was heavy before the warm-up ended is not new.
    const firstMs = before?.firstMs ?? (knownMinutes < WARM_UP_MINUTES ? nowMs - NEW_FOR_MS : nowMs);
    remembered.delete(digest);
    remembered.set(digest, { firstMs, lastMs: nowMs });
    if (nowMs - firstMs >= NEW_FOR_MS) continue;
    findings.push({
      subject: subjectOf("new-heavy-key", `${rule}:${digest}`),
      kind: "new-heavy-key",
      rule,
      severity: "warning",
      summary:
        `a key that was not heavy before makes ${percent(Math.min(1, share))} of the checks of rule ${rule}: ` +
        `${spelled(attributes)}, ${figure(count)} in the last hour, ${figure(refused)} of them refused`,
      value: count,
      level: share >= heavy ? "fire" : "hold",
    });
  }
  // Oldest first: those are dropped.
  const surplus = Math.max(0, remembered.size - MOST_KNOWN);
  return { findings, known: new Map([...remembered].slice(surplus)) };
}

function digestOf(rule: string, attributes: Readonly<Record<string, string>>): string {
  return createHash("sha256")
    .update(JSON.stringify([rule, attributes]))
    .digest("base64url")
    .slice(0, 16);
}

const LONGEST_KEY = 100;

function spelled(attributes: Readonly<Record<string, string>>): string {
  const text = Object.entries(attributes)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
  return text.length <= LONGEST_KEY ? text : `${text.slice(0, LONGEST_KEY)}…`;
}
