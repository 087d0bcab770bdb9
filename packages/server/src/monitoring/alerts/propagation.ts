/** An instance that does not get the rules that are in force elsewhere, or cannot read any. In: what each instance reports. Pure. */
import { type Finding, figure, subjectOf } from "./finding.js";

export interface InstanceReport {
  readonly instance: string;
  readonly atMs: number;
  /** Absent where versions are the instance's own: its rules come from a file. */
  readonly rulesVersion?: number;
  /** When it got this version. */
  readonly versionSinceMs: number;
  readonly rulesLoaded: boolean;
  readonly configurationError?: string;
  readonly storeDegraded: boolean;
}

/** A change is in force within a second; this long without it is no delay any more. */
const STUCK_AFTER_MS = 10_000;

export function propagationStuck(reports: readonly InstanceReport[], nowMs: number): Finding[] {
  const newest = reports.reduce((most, report) => (versionOf(report) > versionOf(most) ? report : most), reports[0]!);
  return reports.flatMap((report): Finding[] => {
    const isOlder = report.rulesVersion !== undefined && report.rulesVersion < versionOf(newest);
    const behind = isOlder && nowMs - newest.versionSinceMs >= STUCK_AFTER_MS;
    if (!behind && report.rulesLoaded) return [];
    const why = report.configurationError === undefined ? "" : `: ${report.configurationError}`;
    const summary = report.rulesLoaded
      ? `instance ${report.instance} is still at version ${report.rulesVersion} of the rules; version ${newest.rulesVersion} ` +
        `has been in force for ${figure((nowMs - newest.versionSinceMs) / 1_000)} s${why}`
      : `instance ${report.instance} has no rules: nothing is limited there${why}`;
    return [
      {
        subject: subjectOf("propagation-stuck", report.instance),
        kind: "propagation-stuck",
        severity: report.rulesLoaded ? "warning" : "critical",
        summary,
        ...(report.rulesVersion !== undefined && { value: report.rulesVersion, expected: versionOf(newest) }),
        level: "fire",
      },
    ];
  });
}

function versionOf({ rulesVersion = 0 }: InstanceReport): number {
  return rulesVersion;
}
