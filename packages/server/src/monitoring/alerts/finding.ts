/** A detector's finding: something is unusual now. `alert-book.ts` decides whether it starts, sustains or ends an alert. */
import type { AlertKind, AlertView } from "../views/alerts.js";

export interface Finding {
  /** Identifies the problem, equally on every instance. Each subject has at most one open alert. */
  readonly subject: string;
  readonly kind: AlertKind;
  readonly rule?: string;
  /** The condition, for `threshold`. */
  readonly condition?: string;
  readonly severity: AlertView["severity"];
  readonly summary: string;
  readonly value?: number;
  readonly expected?: number;
  /** `hold`: too weak to start an alert, but sustains one that fires. This hysteresis keeps alerts from flapping. */
  readonly level: "fire" | "hold";
}

export function subjectOf(kind: AlertKind, about?: string): string {
  return about === undefined ? kind : `${kind}:${about}`;
}

/** Formats a number for people: 1234 -> "1234", 0.1234 -> "0.12". */
export function figure(value: number): string {
  return Math.abs(value) >= 10 ? String(Math.round(value)) : String(Math.round(value * 100) / 100);
}

export function percent(share: number): string {
  return `${figure(share * 100)} %`;
}
