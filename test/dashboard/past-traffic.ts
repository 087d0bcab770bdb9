/** Eight days of traffic as the memory store's history keeps them: charts have a past, and no test waits for it. */
import { type Step, stepAt, steps } from "../../packages/server/src/monitoring/history/history.js";
import { packCounts } from "../../packages/server/src/monitoring/history/packed-counts.js";

interface PastOptions {
  readonly nowMs: number;
  readonly rule: string;
  /** For so many minutes until now, half of all requests are refused. */
  readonly incidentMinutes?: number;
}

/** Requests a second at an instant: day and night, and a third more today than before. */
export function pastRate(atMs: number, nowMs: number): { allowed: number; refused: number } {
  const allowed = 40 + Math.round(20 * Math.sin((atMs / 86_400_000) * 2 * Math.PI));
  return nowMs - atMs < 12 * 3_600_000 ? { allowed: allowed + 20, refused: 5 } : { allowed, refused: 2 };
}

/** The text of the file `monitoring-history` in the data folder. */
export function pastTraffic({ nowMs, rule, incidentMinutes = 0 }: PastOptions): string {
  const lines: object[] = [];
  for (const step of ["minute", "quarter"] as const satisfies readonly Step[]) {
    const { lengthMs, keepMs } = steps[step];
    const seconds = lengthMs / 1_000;
    const lastMs = stepAt(step, nowMs);
    for (let atMs = lastMs - keepMs + 2 * lengthMs; atMs < lastMs; atMs += lengthMs) {
      const usual = pastRate(atMs, nowMs);
      const isIncident = step === "minute" && atMs >= lastMs - incidentMinutes * lengthMs;
      const rate = isIncident ? { allowed: usual.allowed, refused: usual.allowed } : usual;
      const counts = { allowed: rate.allowed * seconds, refused: rate.refused * seconds };
      const total = { ...counts, seconds, latency03: counts.allowed, latency06: counts.refused };
      lines.push({ step, atMs, series: { total: packCounts(total), [rule]: packCounts(counts) } });
    }
  }
  return [{ layout: 1 }, ...lines, { end: lines.length }].map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** The text of the file `shared-state`: alerts have been evaluated for eight days. */
export function pastAlerts(nowMs: number): string {
  const since = { name: "alerts:since", text: String(nowMs - 8 * 86_400_000), endsAtMs: nowMs + 86_400_000 };
  return [{ layout: 1 }, since, { end: 1 }].map((line) => `${JSON.stringify(line)}\n`).join("");
}
