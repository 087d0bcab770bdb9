/** What a schedule is made of: its rules and steps, and the words that schedules share. */
import type { Attributes, CheckPart, Rule } from "sluice";

export type Step =
  | { check: Attributes; cost?: number; id?: string; maxWaitMs?: number; gives: Record<string, unknown> }
  | { charge: Attributes; cost?: number; id?: string; gives: Record<string, unknown> }
  /** Parts that are decided as one; `gives` is of the decision, `parts` of each part's first check. */
  | {
      all: readonly CheckPart[];
      id?: string;
      gives: Record<string, unknown>;
      parts: readonly Record<string, unknown>[];
    }
  /** Rejects with this code. */
  | { all: readonly CheckPart[]; id: string; rejects: string }
  | { check: Attributes; cost?: number; id: string; rejects: string }
  | { peek: Attributes; cost?: number; id?: string; gives: Record<string, unknown> }
  /** As many at once, each with an id of its own: `id`, then its number. */
  | { charges: number; of: Attributes; cost: number; id: string }
  /** The first so many of those ids, at once. */
  | { refunds: number; id: string }
  | { wait: number }
  /** The n-th check of this schedule, from 0, be it of one part or of several. */
  | { refund: number; gives: boolean }
  | { refundId: string; gives: boolean }
  | { giveBack: Attributes; cost?: number; gives: boolean }
  | { release: number; gives: boolean }
  | { renew: number; gives: boolean }
  /** The reservation of the n-th check. */
  | { settle: number; costs: Attributes; gives: Record<string, unknown> }
  | { extend: number; costs: Attributes; gives: Record<string, unknown> }
  | { cancel: number; gives: Record<string, unknown> }
  | { reset: string; attributes: Attributes }
  /** `version` of the rules; default: the next. */
  | { setRules: readonly Rule[]; version?: number };

export interface Schedule {
  readonly name: string;
  readonly rules: readonly Rule[];
  readonly steps: readonly Step[];
}

export const user = { user: "ann" };
export const passes = (remaining: number): Record<string, unknown> => ({
  allowed: true,
  remaining,
  retryAfterMs: 0,
  violated: [],
});
export const refuses = (reason = "limit"): Record<string, unknown> => ({ allowed: false, remaining: 0, reason });
export const times = (n: number, step: Step): Step[] => Array.from({ length: n }, () => step);

/** The rate algorithms at three a year: nothing comes back while a test runs. */
export const threeAYear: Rule[] = [
  { id: "r", key: ["user"], algorithm: "token-bucket", limit: 3, window: "365d" },
  { id: "r", key: ["user"], algorithm: "gcra", limit: 3, window: "365d" },
  { id: "r", key: ["user"], algorithm: "fixed-window", limit: 3, window: "365d" },
  { id: "r", key: ["user"], algorithm: "sliding-counter", limit: 3, window: "365d" },
  { id: "r", key: ["user"], algorithm: "rolling-window", limit: 3, window: "365d", storage: "sorted-set" },
  { id: "r", key: ["user"], algorithm: "rolling-window", limit: 3, window: "365d", storage: "packed" },
  { id: "r", key: ["user"], algorithm: "concurrency", limit: 3, ttl: "365d" },
];

export const nameOf = (rule: Rule): string =>
  "storage" in rule && rule.storage ? `${rule.algorithm} (${rule.storage})` : rule.algorithm;
export const reasonOf = (rule: Rule): string => (rule.algorithm === "concurrency" ? "concurrency" : "limit");

/** Soon over, and long enough for a busy machine to come to the next step in time. */
export const short = "2s";
