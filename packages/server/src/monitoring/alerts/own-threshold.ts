/**
 * User-defined thresholds: fires if every one of the last minutes is beyond it, holds while the latest is. Pure.
 * A minute without checks has no share of refusals, so it is never beyond such a bound; nor is one that nobody counted beyond any.
 */
import { parseDuration } from "sluice/internal";
import type { AlertCondition } from "../../configuration/alert-policy.js";
import { type Finding, figure, percent, subjectOf } from "./finding.js";
import { MINUTES, type SeriesWindow } from "./series-window.js";

const words = { checks: "checks a minute", refused: "refusals a minute", "refused-share": "of the checks are refused" };

export function ownThreshold(
  window: SeriesWindow,
  condition: AlertCondition,
  rule: string | undefined,
): Finding | undefined {
  const { id, metric, above, below, severity = "warning" } = condition;
  const minutes = Math.min(MINUTES, minutesOf(condition));
  if (window.knownMinutes < minutes) return undefined;
  const values = Array.from({ length: minutes }, (_, i) => valueAt(window, metric, MINUTES - minutes + i));
  const isBeyond = (value: number | undefined): boolean =>
    value !== undefined && (above === undefined ? value < below! : value > above);
  const last = values.at(-1);
  if (last === undefined || !isBeyond(last)) return undefined;
  const spell = metric === "refused-share" ? percent : figure;
  const bound = above === undefined ? `below ${spell(below!)}` : `above ${spell(above)}`;
  const about = rule === undefined ? "all requests" : `rule ${rule}`;
  return {
    subject: subjectOf("threshold", rule === undefined ? id : `${id}:${rule}`),
    kind: "threshold",
    condition: id,
    ...(rule !== undefined && { rule }),
    severity,
    summary: `${id}: ${spell(last)} ${words[metric]} (${about}), ${bound} for ${minutes} min`,
    value: last,
    expected: above ?? below!,
    level: values.every(isBeyond) ? "fire" : "hold",
  };
}

const DEFAULT_MINUTES = 3;

function minutesOf({ for: length }: AlertCondition): number {
  const ms = length === undefined ? undefined : parseDuration(length);
  return ms === undefined ? DEFAULT_MINUTES : Math.max(1, Math.round(ms / 60_000));
}

function valueAt(window: SeriesWindow, metric: AlertCondition["metric"], i: number): number | undefined {
  const { checks, refused, gaps } = window;
  if (gaps?.has(i)) return undefined;
  if (metric === "checks") return checks[i]!;
  if (metric === "refused") return refused[i]!;
  return checks[i]! === 0 ? undefined : refused[i]! / checks[i]!;
}
