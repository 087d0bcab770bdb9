/**
 * Utilisation that programs and backends report, by key and source, each until it expires. The highest report of a key counts. Bounded:
 * sources beyond the bound are refused, so that nobody can push out another's report. The instances' own reports (of their event loops)
 * have a higher bound: callers of the data plane can exhaust the former, never the latter. Time is an argument.
 */
import { SluiceError } from "../errors.js";
import { describeValue } from "../rules/describe-value.js";

interface UtilisationReport {
  readonly value: number;
  /** Which backend, or which part of the program. */
  readonly source: string;
  /** The gauge of a rule with a key: its values, joined by commas. "": every gauge. */
  readonly key: string;
  readonly ttlMs: number;
}

interface Held {
  readonly value: number;
  readonly endsAtMs: number;
}

export const DEFAULT_REPORT_TTL_MS = 10_000;
const LONGEST_REPORT_TTL_MS = 300_000;
const MOST_REPORTS = 1_000;
const MOST_WITH_INSTANCES = 2_000;
/** The key under which instances report their event loops to each other. */
export const LOOP_KEY = "~event-loop";
const LONGEST_NAME = 256;

export class UtilisationReports {
  readonly #byKey = new Map<string, Map<string, Held>>();
  #count = 0;

  /** An invalid report, or one source too many, throws `invalid-request`. */
  add(report: UtilisationReport, nowMs: number): void {
    const { value, source, key, ttlMs } = checked(report);
    const sources = this.#byKey.get(key) ?? new Map<string, Held>();
    if (!sources.has(source)) {
      const most = mostReports(key);
      if (this.#count >= most) this.#forgetExpired(nowMs);
      if (this.#count >= most) throw invalid(`source: expected at most ${most} reports at a time`);
      this.#count++;
    }
    sources.set(source, { value, endsAtMs: nowMs + ttlMs });
    this.#byKey.set(key, sources);
  }

  /** The highest current report that applies to a gauge; undefined if there is none. */
  highest(key: string, nowMs: number): number | undefined {
    const all = this.highestOf("", nowMs);
    if (key === "") return all;
    const own = this.highestOf(key, nowMs);
    return own === undefined || (all !== undefined && all > own) ? all : own;
  }

  /** The current reports, each with its remaining time. */
  *list(nowMs: number): Generator<UtilisationReport> {
    for (const [key, sources] of this.#byKey) {
      for (const [source, { value, endsAtMs }] of sources) {
        if (endsAtMs > nowMs) yield { value, source, key, ttlMs: endsAtMs - nowMs };
      }
    }
  }

  /** The highest of the reports for exactly this key. */
  highestOf(key: string, nowMs: number): number | undefined {
    let highest: number | undefined;
    for (const { value, endsAtMs } of this.#byKey.get(key)?.values() ?? []) {
      if (endsAtMs > nowMs && (highest === undefined || value > highest)) highest = value;
    }
    return highest;
  }

  #forgetExpired(nowMs: number): void {
    for (const [key, sources] of this.#byKey) {
      for (const [source, { endsAtMs }] of sources) {
        if (endsAtMs > nowMs) continue;
        sources.delete(source);
        this.#count--;
      }
      if (sources.size === 0) this.#byKey.delete(key);
    }
  }
}

/** How many reports may be held when one for this key is added; the same in the store. */
export function mostReports(key: string): number {
  return key === LOOP_KEY ? MOST_WITH_INSTANCES : MOST_REPORTS;
}

/** Catches mistakes of plain JavaScript callers, and of callers over the network. */
function checked(report: UtilisationReport): UtilisationReport {
  const { value, source, key, ttlMs } = report;
  if (typeof value !== "number" || !(value >= 0 && value <= 1)) {
    throw invalid(`value: expected a utilisation from 0 to 1, got ${String(value)}`);
  }
  if (typeof source !== "string" || source === "" || source.length > LONGEST_NAME) {
    throw invalid(`source: expected a name of 1 to ${LONGEST_NAME} characters, got ${described(source)}`);
  }
  if (typeof key !== "string" || key.length > LONGEST_NAME) {
    throw invalid(`key: expected a text of at most ${LONGEST_NAME} characters, got ${described(key)}`);
  }
  if (typeof ttlMs !== "number" || !(ttlMs >= 1 && ttlMs <= LONGEST_REPORT_TTL_MS)) {
    throw invalid(
      `ttl: expected 1 ms to ${LONGEST_REPORT_TTL_MS / 1000} s, got ${typeof ttlMs === "number" ? `${ttlMs} ms` : described(ttlMs)}`,
    );
  }
  return report;
}

function described(value: unknown): string {
  return typeof value === "string" ? `one of ${value.length}` : describeValue(value);
}

function invalid(message: string): SluiceError {
  return new SluiceError("invalid-request", message);
}
