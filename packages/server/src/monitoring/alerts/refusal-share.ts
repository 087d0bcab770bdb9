/**
 * Detects a share of refusals that is suddenly higher than in the last hour, and than at this time on earlier days. A rule that always
 * refuses much is no anomaly. Pure.
 */
import { BLOCK, JUDGED, MINUTES_FOR_RECENT, spreadOf } from "./baseline.js";
import { type Finding, percent, subjectOf } from "./finding.js";
import { MINUTES, median, type SeriesWindow, SLOTS, sumOf } from "./series-window.js";

const MINUTES_IN_A_ROW = 3;
const LEAST_REFUSED = 30;
const LEAST_RISE = 0.2;
/** Thresholds without earlier days to compare with. */
const LEAST_RISE_IN_WARM_UP = 0.35;
const LEAST_REFUSED_IN_WARM_UP = 60;
const HOLD_RISE = 0.08;
const EACH_RISE = 0.1;
const SPREADS = 5;
/** With fewer checks than this for comparison, a share means little: then half must be refused, and a larger number. */
const ENOUGH_CHECKS = 100;
const LEAST_SHARE_UNKNOWN = 0.5;
const LEAST_REFUSED_UNKNOWN = 100;

/** `above`: the critical rise, instead of 20 percentage points. */
export function refusalShare(
  window: SeriesWindow,
  rule: string | undefined,
  { above = LEAST_RISE }: { readonly above?: number } = {},
): Finding | undefined {
  if (window.knownMinutes < MINUTES_FOR_RECENT) return undefined;
  const { checks, refused } = window;
  const from = MINUTES - MINUTES_IN_A_ROW;
  const count = sumOf(checks, from, MINUTES);
  const refusals = sumOf(refused, from, MINUTES);
  if (refusals < LEAST_REFUSED) return undefined;
  const share = refusals / count;
  const { usual, known, seasonal, wandering } = usualShare(window);
  // Combines sampling noise with the share's own fluctuation.
  const spread = Math.hypot(Math.sqrt((Math.max(usual, 0.01) * (1 - Math.min(usual, 0.99))) / count), wandering);
  const rises = seasonal
    ? share - usual >= above
    : share - usual >= Math.max(above, LEAST_RISE_IN_WARM_UP) && refusals >= LEAST_REFUSED_IN_WARM_UP;
  const sudden = rises && (share >= 2.2 * usual || 1 - share <= 0.4 * (1 - usual));
  const each = Array.from({ length: MINUTES_IN_A_ROW }, (_, i) => from + i).every(
    (i) => refused[i]! / Math.max(1, checks[i]!) >= usual + Math.min(EACH_RISE, above / 2),
  );
  const enough = known || (share >= LEAST_SHARE_UNKNOWN && refusals >= LEAST_REFUSED_UNKNOWN);
  const fires = sudden && each && enough && share - usual >= SPREADS * spread;
  if (!fires && share - usual < Math.min(HOLD_RISE, above * 0.4)) return undefined;
  const about = rule === undefined ? "of all requests" : `of the checks of rule ${rule}`;
  return {
    subject: subjectOf("refusal-share", rule),
    kind: "refusal-share",
    ...(rule !== undefined && { rule }),
    severity: "warning",
    summary: `${percent(share)} ${about} are refused; ${percent(usual)} are usual`,
    value: share,
    expected: usual,
    level: fires ? "fire" : "hold",
  };
}

interface Usual {
  /** The larger of the last hour's share and the median of earlier days at this time. */
  readonly usual: number;
  /** Spread between the blocks of the last hour. */
  readonly wandering: number;
  readonly known: boolean;
  readonly seasonal: boolean;
}

function usualShare({ checks, refused, season }: SeriesWindow): Usual {
  const compared = MINUTES - JUDGED;
  const shares: number[] = [];
  for (const day of season) {
    const of = sumOf(day.checks, SLOTS / 2, SLOTS);
    if (of >= ENOUGH_CHECKS) shares.push(sumOf(day.refused, SLOTS / 2, SLOTS) / of);
  }
  const recent = sumOf(checks, 0, compared);
  const recentShare = recent === 0 ? 0 : sumOf(refused, 0, compared) / recent;
  const blocks: number[] = [];
  for (let from = 0; from < compared; from += BLOCK) {
    const of = sumOf(checks, from, from + BLOCK);
    if (of > 0) blocks.push(sumOf(refused, from, from + BLOCK) / of);
  }
  return {
    usual: Math.max(recentShare, median(shares)),
    wandering: spreadOf(blocks, median(blocks)),
    seasonal: shares.length > 0,
    known: recent >= ENOUGH_CHECKS || shares.length > 0,
  };
}
