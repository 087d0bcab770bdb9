/** Which parts of the alert policy speak for an alert: its receivers, the silence that holds it back, the tuning of its detector. Pure. */
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
    // A condition is named like a kind.
    (kind === undefined || kind === alert.kind || kind === alert.condition) &&
    (severity === undefined || severity === alert.severity)
  );
}

/** The receivers of every route that fits, each with its shortest repeat. */
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

/** The end of the last silence that holds it back now. */
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

/** The first that fits. `rule` is undefined for all requests together, which tuning without a scope speaks for too. */
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
