/**
 * Utilisation reports as utilisation.lua stores them. Unreadable ones are skipped: another version may have written them. Pure.
 */
import type { SharedReport } from "../store.js";

/** The arguments of the script. */
export function spellWritten({ report, most }: { report: SharedReport; most: number }): (string | number)[] {
  return [most, spellReport(report), report.value, Math.ceil(report.ttlMs)];
}

/** The field of a report: which source reports for which key. */
export function spellReport({ source, key }: SharedReport): string {
  return JSON.stringify([source, key]);
}

/** `reply`: the current time, then field, utilisation and remaining milliseconds of each report. */
export function readReports(reply: readonly unknown[]): SharedReport[] {
  const reports: SharedReport[] = [];
  for (let i = 1; i + 2 < reply.length; i += 3) {
    const report = readReport(String(reply[i]), Number(reply[i + 1]), Number(reply[i + 2]));
    if (report !== undefined) reports.push(report);
  }
  return reports;
}

function readReport(field: string, value: number, ttlMs: number): SharedReport | undefined {
  if (!(value >= 0 && value <= 1) || !(ttlMs > 0)) return undefined;
  try {
    const [source, key] = JSON.parse(field) as unknown[];
    return typeof source === "string" && typeof key === "string" ? { value, source, key, ttlMs } : undefined;
  } catch {
    return undefined;
  }
}
