/** Keys: the busiest, the blocked, and everything known about a single one. */
import type { Scope, StatsWindow } from "./time.js";

/** `GET /admin/v1/keys/blocked?rule=ID` */
export interface BlockedKeysView {
  readonly atMs: number;
  /** Longest first, at most 1000. */
  readonly keys: readonly BlockedKeyView[];
  /** False if the list may be incomplete, because there were too many keys to scan. */
  readonly complete: boolean;
}

export interface BlockedKeyView {
  readonly rule: string;
  /** Absent if the values are so long that only their digest is stored. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly leftMs: number;
}

/** `POST /admin/v1/keys/history` `{attributes, from?, to?}`: one key's traffic by rule, and its last refusals. */
export interface KeyView {
  readonly atMs: number;
  readonly scope: Scope;
  readonly periodMs: number;
  /** Quarter hours of the last hour, otherwise hours. `isKnown`: some instance has published its table for that time. */
  readonly periods: readonly { readonly atMs: number; readonly isKnown: boolean }[];
  /** From the top-key tables: 0 if the key was too rare to be listed. */
  readonly rules: readonly KeyRuleTraffic[];
  /** A sample, newest first, at most 50; kept for six hours. */
  readonly refusals: readonly KeyRefusal[];
  /** `hidden`: attribute names without values. */
  readonly refusalValues: "shown" | "hidden" | "off";
}

/** One count per period. */
export interface KeyRuleTraffic {
  readonly rule: string;
  readonly checks: readonly number[];
  readonly refused: readonly number[];
}

export interface KeyRefusal {
  readonly atMs: number;
  readonly rule: string;
  readonly reason: string;
  readonly attributes: Readonly<Record<string, string>>;
}

/** `GET /admin/v1/keys/top?window=hour|day&by=traffic|refusals|spend&unit=UNIT&rule=ID&search=TEXT&limit=N` */
export interface TopKeysView {
  readonly atMs: number;
  readonly window: StatsWindow;
  readonly by: "traffic" | "refusals" | "spend";
  /** With `spend`: the unit, and the others with spending. */
  readonly unit?: string;
  readonly units?: readonly string[];
  /** `instance`: only the current quarter hour (window `hour`) or hour (window `day`). */
  readonly scope: Scope;
  /** Counts never underestimate, and overestimate by at most this. */
  readonly maxError: number;
  readonly keys: readonly TopKey[];
  /** Whether there are further keys (`offset`). */
  readonly more: boolean;
}

export interface TopKey {
  readonly rule: string;
  /** The attributes that form the key; empty for a rule that counts everything together. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Set if values were truncated and no longer identify the key: only the digest tells such keys apart. */
  readonly digest?: string;
  readonly count: number;
  readonly refused: number;
  /** With `group=client`: the rules that counted this key, with their counts; `rule` is the first of them. */
  readonly rules?: readonly { readonly rule: string; readonly count: number; readonly refused: number }[];
  /** Highest share of the limit in use, 0 to 1. */
  readonly peakUtilisation: number;
  /** With `spend`: units; `count` and `refused` are then 0 for keys with little traffic. */
  readonly spent?: number;
}
