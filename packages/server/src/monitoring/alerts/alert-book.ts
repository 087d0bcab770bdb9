/**
 * Which alerts are open, and what a round of findings changes. One alert is open for each subject at a time:
 *
 *   (none) --fire--> firing --nothing found for its quiet time--> resolved, kept
 *                      ^ fire or hold: goes on
 *
 * In: findings, the kinds that were judged, the time. Out: what began and what ended. Pure; who keeps it and tells it is elsewhere.
 */
import { randomBytes } from "node:crypto";
import type { AlertKind, AlertView } from "../views/alerts.js";
import type { Finding } from "./finding.js";

export interface KeptAlert extends AlertView {
  readonly subject: string;
  /** When a detector last spoke for it. */
  readonly lastSeenMs: number;
  /** Whether every webhook has got this state of it, or was given up. */
  readonly told: boolean;
  /** A silence held its message back. */
  readonly muted?: boolean;
  /** Its begin was sent, so that its end must be. Absent: yes (of older versions). */
  readonly sent?: boolean;
  /** When each receiver was last reminded of it. */
  readonly reminded?: Readonly<Record<string, number>>;
}

/** How long nothing must be found before an alert is over. */
const quietMs: Readonly<Record<AlertKind, number>> = {
  "unusual-rate": 5 * 60_000,
  "refusal-share": 5 * 60_000,
  "new-heavy-key": 10 * 60_000,
  "store-degraded": 20_000,
  "store-memory": 20_000,
  "propagation-stuck": 20_000,
  threshold: 90_000,
};

/** A fault that hits every rule must not become a thousand messages: beyond this many of one kind, no more begin. */
const MOST_OPEN_OF_A_KIND = 50;

interface Round {
  readonly findings: readonly Finding[];
  /** Kinds whose detectors ran; alerts of the others stay as they are. */
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

  /** `quietMs`: one quiet time for all kinds. */
  constructor(quietMs?: number) {
    this.#quietMs = quietMs;
  }

  get open(): readonly KeptAlert[] {
    return [...this.#open.values()];
  }

  /** Takes over what others knew. */
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
    // The strongest first: those are the ones to keep where there are too many.
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

/** Figures and summary are renewed while the finding is strong enough to fire: a problem is not described by its fading. */
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
