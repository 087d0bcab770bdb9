/** The parts of the alert policy that apply to an alert: its receivers, the silence that suppresses it, its detector's tuning. Pure. */
import { parseDuration } from "sluice/internal";
import type { Silence } from "../../configuration/alert-policies.js";
import type { AlertMatch, AlertPolicy, AlertScope, DetectorTuning } from "../../configuration/alert-policy.js";
import type { AlertKind, AlertView } from "../views/alerts.js";

export type TagsOf = (rule: string) => readonly string[];

type About = Pick<AlertView, "rule" | "kind" | "severity" | "condition">;

function fits({ rule, tag, kind, severity }: AlertMatch, alert: About, tagsOf: TagsOf): boolean {
  return (
    (rule === undefined || rule === alert.rule) &&
    (tag === undefined || (alert.rule !== undefined && tagsOf(alert.rule).includes(tag))) &&
    // `kind` may also name a condition.
    (kind === undefined || kind === alert.kind || kind === alert.condition) &&
    (severity === undefined || severity === alert.severity)
  );
}

/** The receivers of all matching routes, each with its shortest repeat interval. */
export function receiversFor(
  { routes, receivers }: AlertPolicy,
  alert: About,
  tagsOf: TagsOf,
): ReadonlyMap<string, number> {
  if (routes.length === 0) return new Map(receivers.map(({ id }) => [id, Number.POSITIVE_INFINITY]));
  const found = new Map<string, number>();
  for (const { match = {}, receivers: named, repeat } of routes) {
    if (!fits(match, alert, tagsOf)) continue;
    const everyMs = (repeat === undefined ? undefined : parseDuration(repeat)) ?? Number.POSITIVE_INFINITY;
    for (const id of named) found.set(id, Math.min(everyMs, found.get(id) ?? Number.POSITIVE_INFINITY));
  }
  return found;
}

/** When the last of its active silences ends. */
export function silencedUntil(
  silences: readonly Silence[],
  alert: About,
  { tagsOf, nowMs }: { tagsOf: TagsOf; nowMs: number },
): number | undefined {
  let untilMs: number | undefined;
  for (const { match, endsAtMs } of silences) {
    if (endsAtMs > nowMs && endsAtMs > (untilMs ?? 0) && fits(match, alert, tagsOf)) untilMs = endsAtMs;
  }
  return untilMs;
}

/** The first match. `rule` is undefined for all requests together, which tuning without a scope matches too. */
export function tuningFor(
  { detectors }: AlertPolicy,
  about: { kind: AlertKind; rule: string | undefined },
  tagsOf: TagsOf,
): DetectorTuning | undefined {
  return detectors.find(({ kind, ...scope }) => kind === about.kind && inScope(scope, about.rule, tagsOf));
}

function inScope({ rule, tag }: AlertScope, of: string | undefined, tagsOf: TagsOf): boolean {
  if (rule !== undefined) return rule === of;
  return tag === undefined || (of !== undefined && tagsOf(of).includes(tag));
}
