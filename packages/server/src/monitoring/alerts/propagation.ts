/** Detects an instance that lacks the rules in force elsewhere, or could not load any. In: the instances' reports. Pure. */
import type { InstanceReport } from "../../instance/heartbeat.js";
import { type Finding, figure, subjectOf } from "./finding.js";

/** A change propagates within a second; this long without it is more than a delay. */
const STUCK_AFTER_MS = 10_000;

export function propagationStuck(reports: readonly InstanceReport[], nowMs: number): Finding[] {
  const newest = reports.reduce((most, report) => (versionOf(report) > versionOf(most) ? report : most), reports[0]!);
  return reports.flatMap((report): Finding[] => {
    const isOlder = report.sharedVersion !== undefined && report.sharedVersion < versionOf(newest);
    const behind = isOlder && nowMs - newest.versionSinceMs >= STUCK_AFTER_MS;
    if (!behind && report.rulesLoaded) return [];
    const why = report.configurationError === undefined ? "" : `: ${report.configurationError}`;
    const summary = report.rulesLoaded
      ? `instance ${report.instance} is still at version ${report.sharedVersion} of the rules; version ${newest.sharedVersion} ` +
        `has been in force for ${figure((nowMs - newest.versionSinceMs) / 1_000)} s${why}`
      : `instance ${report.instance} has no rules: nothing is limited there${why}`;
    return [
      {
        subject: subjectOf("propagation-stuck", report.instance),
        kind: "propagation-stuck",
        severity: report.rulesLoaded ? "warning" : "critical",
        summary,
        ...(report.sharedVersion !== undefined && { value: report.sharedVersion, expected: versionOf(newest) }),
        level: "fire",
      },
    ];
  });
}

function versionOf({ sharedVersion = 0 }: InstanceReport): number {
  return sharedVersion;
}
