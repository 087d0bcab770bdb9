/** Alerts, and the events marked in charts. */
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
  /** Absent if the alert is about all rules, or the store. */
  readonly rule?: string;
  readonly state: "firing" | "resolved";
  readonly severity: "warning" | "critical";
  /** One sentence with the underlying figures. */
  readonly summary: string;
  readonly startedAtMs: number;
  readonly endedAtMs?: number;
  /** Observed and expected value. */
  readonly value?: number;
  readonly expected?: number;
  /** For `threshold`: the condition in the alert policy. */
  readonly condition?: string;
  readonly acknowledged?: { readonly by: string; readonly atMs: number; readonly note?: string };
  /** For a firing alert: suppressed until then. */
  readonly silencedUntilMs?: number;
}

/** `GET /admin/v1/alerts`: firing ones first, then newest first; resolved ones are kept for eight days, at most 500. */
export interface AlertsView {
  readonly atMs: number;
  /** `instance`: only what this instance has seen itself; stored alerts cannot be read. */
  readonly scope: Scope;
  readonly alerts: readonly AlertView[];
  /** Where alerts are sent, without secrets, and the delivery state. */
  readonly webhooks: readonly {
    readonly url: string;
    readonly format: "json" | "slack";
    readonly lastSentAtMs?: number;
    readonly lastError?: string;
  }[];
  /** The alert policy's receivers. */
  readonly receivers: readonly {
    readonly id: string;
    readonly type: string;
    readonly lastSentAtMs?: number;
    readonly lastError?: string;
  }[];
}

/** `GET /admin/v1/timeline?from=TIME&to=TIME&rule=ID`: the events of a range, for chart markers. */
export interface TimelineView {
  /** Oldest first; if there are more than 200, the newest. */
  readonly events: readonly TimelineEvent[];
  /** False if the list may be truncated. */
  readonly complete: boolean;
}

export type TimelineEvent =
  | {
      readonly kind: "rules" | "promotion" | "rollback";
      readonly atMs: number;
      readonly version: number;
      readonly author: string;
      /** The reason given, otherwise what changed. */
      readonly text: string;
    }
  | { readonly kind: "alert"; readonly atMs: number; readonly alert: string; readonly text: string };
