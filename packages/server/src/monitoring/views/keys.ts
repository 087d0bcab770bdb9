/** Keys: the busiest, the blocked, and all that is known of one. */
import type { Scope, StatsWindow } from "./time.js";

/** `GET /admin/v1/keys/blocked?rule=ID` */
export interface BlockedKeysView {
  readonly atMs: number;
  /** The longest first, at most 1000. */
  readonly keys: readonly BlockedKeyView[];
  /** False where there may be more: too many keys to look at all. */
  readonly complete: boolean;
}

export interface BlockedKeyView {
  readonly rule: string;
  /** Absent where they are so long that only their digest is kept. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly leftMs: number;
}

/** `POST /admin/v1/keys/history` `{attributes, from?, to?}`: one key's traffic by rule, and its last refusals. */
export interface KeyView {
  readonly atMs: number;
  readonly scope: Scope;
  readonly periodMs: number;
  /** Quarter hours of the last hour, else hours. `isKnown`: an instance has written its table of that time. */
  readonly periods: readonly { readonly atMs: number; readonly isKnown: boolean }[];
  /** From the tables of top keys: 0 where the key came too seldom to be listed. */
  readonly rules: readonly KeyRuleTraffic[];
  /** A sample, newest first, at most 50; kept for six hours. */
  readonly refusals: readonly KeyRefusal[];
  /** `hidden`: names of attributes without values. */
  readonly refusalValues: "shown" | "hidden" | "off";
}

/** One count for each period. */
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
  /** With `spend`: of what, and of what else there is spending. */
  readonly unit?: string;
  readonly units?: readonly string[];
  /** `instance`: of the quarter hour (window `hour`) or the hour (window `day`) that lasts. */
  readonly scope: Scope;
  /** No count is more than this above the truth, and none is below it. */
  readonly maxError: number;
  readonly keys: readonly TopKey[];
  /** Whether there are more after these (`offset`). */
  readonly more: boolean;
}

export interface TopKey {
  readonly rule: string;
  /** The attributes that form the key; empty for a rule that counts everything together. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Present where values are so long that they were cut: they name no key, and only the digest tells two such keys apart. */
  readonly digest?: string;
  readonly count: number;
  readonly refused: number;
  /** With `group=client`: the rules that counted this key, and their share of it; `rule` is the first of them. */
  readonly rules?: readonly { readonly rule: string; readonly count: number; readonly refused: number }[];
  /** Highest share of the limit that was in use, 0 to 1. */
  readonly peakUtilisation: number;
  /** With `spend`: units; `count` and `refused` are then 0 for keys with little traffic. */
  readonly spent?: number;
}
