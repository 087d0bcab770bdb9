/**
 * Tracks which alerts are open, and applies a round of findings to them. Each subject has at most one open alert:
 *
 *   (none) --fire--> firing --nothing found for its quiet time--> resolved, kept
 *                      ^ fire or hold: stays open
 *
 * In: findings, the kinds that were evaluated, the time. Out: which alerts started and ended. Pure; storing and sending is done elsewhere.
 */
import { randomBytes } from "node:crypto";
import type { AlertKind, AlertView } from "../views/alerts.js";
import type { Finding } from "./finding.js";

export interface KeptAlert extends AlertView {
  readonly subject: string;
  /** When a detector last reported it. */
  readonly lastSeenMs: number;
  /** Whether every webhook has received this state, or was given up on. */
  readonly told: boolean;
  /** A silence suppressed its message. */
  readonly muted?: boolean;
  /** Its start was sent, so its end must be sent too. Absent: yes (older versions). */
  readonly sent?: boolean;
  /** When each receiver was last sent a reminder. */
  readonly reminded?: Readonly<Record<string, number>>;
}

/** How long there must be no finding before an alert resolves. */
const quietMs: Readonly<Record<AlertKind, number>> = {
  "unusual-rate": 5 * 60_000,
  "refusal-share": 5 * 60_000,
  "new-heavy-key": 10 * 60_000,
  "store-degraded": 20_000,
  "store-memory": 20_000,
  "propagation-stuck": 20_000,
  threshold: 90_000,
};

/** A fault that affects every rule must not become a thousand messages: beyond this many per kind, no more fire. */
const MOST_OPEN_OF_A_KIND = 50;

interface Round {
  readonly findings: readonly Finding[];
  /** Kinds whose detectors ran; alerts of other kinds stay as they are. */
  readonly judged: ReadonlySet<AlertKind>;
  readonly nowMs: number;
}

interface Changes {
  readonly began: readonly KeptAlert[];
  readonly ended: readonly KeptAlert[];
}

export class AlertBook {
  readonly #open = new Map<string, KeptAlert>();
  readonly #quietMs: number | undefined;

  /** `quietMs` overrides the quiet time of all kinds. */
  constructor(quietMs?: number) {
    this.#quietMs = quietMs;
  }

  get open(): readonly KeptAlert[] {
    return [...this.#open.values()];
  }

  /** Replaces the state by the stored alerts. */
  load(alerts: readonly KeptAlert[]): void {
    this.#open.clear();
    for (const alert of alerts) this.#open.set(alert.subject, alert);
  }

  put(alert: KeptAlert): void {
    this.#open.set(alert.subject, alert);
  }

  drop(subject: string): void {
    this.#open.delete(subject);
  }

  judge({ findings, judged, nowMs }: Round): Changes {
    const began: KeptAlert[] = [];
    // Strongest first: those survive if there are too many.
    for (const finding of [...findings].sort((a, b) => strength(b) - strength(a))) {
      const open = this.#open.get(finding.subject);
      if (open !== undefined) this.put(goesOn(open, finding, nowMs));
      else if (finding.level === "fire" && this.#countOf(finding.kind) < MOST_OPEN_OF_A_KIND) {
        const alert = begin(finding, nowMs);
        this.put(alert);
        began.push(alert);
      }
    }
    const ended: KeptAlert[] = [];
    for (const alert of this.open) {
      if (!judged.has(alert.kind) || nowMs - alert.lastSeenMs < (this.#quietMs ?? quietMs[alert.kind])) continue;
      this.drop(alert.subject);
      ended.push({ ...alert, state: "resolved", endedAtMs: nowMs, told: false });
    }
    return { began, ended };
  }

  #countOf(kind: AlertKind): number {
    let count = 0;
    for (const alert of this.#open.values()) if (alert.kind === kind) count++;
    return count;
  }
}

function begin({ level: _, ...finding }: Finding, nowMs: number): KeptAlert {
  const id = randomBytes(9).toString("base64url");
  return { id, ...finding, state: "firing", startedAtMs: nowMs, lastSeenMs: nowMs, told: false };
}

/** Updates figures and summary only while the finding is strong enough to fire: a problem should not be described by its fading. */
function goesOn(alert: KeptAlert, finding: Finding, nowMs: number): KeptAlert {
  const worse = finding.severity === "critical" && alert.severity === "warning";
  const { summary, severity, value, expected } = finding;
  return {
    ...alert,
    lastSeenMs: nowMs,
    ...(finding.level === "fire" && { summary }),
    ...(worse && { summary, severity, told: false }),
    ...(value !== undefined && { value }),
    ...(expected !== undefined && { expected }),
  };
}

function strength({ severity, value = 0, expected = 0 }: Finding): number {
  return (severity === "critical" ? 1e9 : 0) + Math.abs(Math.log((value + 1) / (expected + 1)));
}
