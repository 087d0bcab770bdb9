/** Alerts, and the events that charts mark. */
import type { Scope } from "./time.js";

export type AlertKind =
  | "unusual-rate"
  | "refusal-share"
  | "new-heavy-key"
  | "store-degraded"
  | "store-memory"
  | "propagation-stuck"
  | "threshold";

export interface AlertView {
  readonly id: string;
  readonly kind: AlertKind;
  /** Absent where the alert is about all of them, or the store. */
  readonly rule?: string;
  readonly state: "firing" | "resolved";
  readonly severity: "warning" | "critical";
  /** One sentence with the figures that led to it. */
  readonly summary: string;
  readonly startedAtMs: number;
  readonly endedAtMs?: number;
  /** The observed and the expected figure. */
  readonly value?: number;
  readonly expected?: number;
  /** Of `threshold`: the condition of the alert policy. */
  readonly condition?: string;
  readonly acknowledged?: { readonly by: string; readonly atMs: number; readonly note?: string };
  /** Of a firing alert: held back until then. */
  readonly silencedUntilMs?: number;
}

/** `GET /admin/v1/alerts`: firing ones first, then newest first; resolved ones are kept for eight days, at most 500. */
export interface AlertsView {
  readonly atMs: number;
  /** `instance`: only what this instance has seen itself; those that are kept in the history cannot be read. */
  readonly scope: Scope;
  readonly alerts: readonly AlertView[];
  /** Where alerts are sent to, without secrets, and how that went. */
  readonly webhooks: readonly {
    readonly url: string;
    readonly format: "json" | "slack";
    readonly lastSentAtMs?: number;
    readonly lastError?: string;
  }[];
  /** Those of the alert policy. */
  readonly receivers: readonly {
    readonly id: string;
    readonly type: string;
    readonly lastSentAtMs?: number;
    readonly lastError?: string;
  }[];
}

/** `GET /admin/v1/timeline?from=TIME&to=TIME&rule=ID`: what happened in a range, for the markers of charts. */
export interface TimelineView {
  /** Oldest first, at most 200: the newest of more. */
  readonly events: readonly TimelineEvent[];
  /** False where there may be more than are listed. */
  readonly complete: boolean;
}

export type TimelineEvent =
  | {
      readonly kind: "rules" | "promotion" | "rollback";
      readonly atMs: number;
      readonly version: number;
      readonly author: string;
      /** The reason that was given, else what changed. */
      readonly text: string;
    }
  | { readonly kind: "alert"; readonly atMs: number; readonly alert: string; readonly text: string };
