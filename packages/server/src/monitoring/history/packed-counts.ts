/**
 * Packs the counts of one series and step into a short text: `a=12 r=3 l04=15`. Both histories store this: a field per count would take
 * several times the memory. Pure.
 */
import type { Counted } from "./history.js";

export type Counts = Readonly<Partial<Record<Counted, number>>>;

const plainNames: readonly (readonly [Counted, string])[] = [
  ["allowed", "a"],
  ["refused", "r"],
  ["shadowRefused", "s"],
  ["candidateAllowed", "ca"],
  ["candidateRefused", "cr"],
  ["degraded", "d"],
  ["storeErrors", "e"],
  ["unmatched", "n"],
  ["seconds", "t"],
  ["bothAllowed", "ba"],
  ["bothRefused", "br"],
  ["onlyLiveRefused", "lr"],
  ["onlyCandidateRefused", "kr"],
  ["turns", "tn"],
  ["waitMs", "tw"],
  ["waiting", "w"],
  ["inFlightUse", "fu"],
  ["inFlightUses", "fn"],
  ["loopUse", "eu"],
  ["loopUses", "en"],
  ["reportedUse", "pu"],
  ["reportedUses", "pn"],
  ["places", "ps"],
  ["inFlight", "pi"],
  ["placesSeen", "pc"],
  ["limit", "li"],
  ["limits", "ln"],
  ["limitUse", "lu"],
  ["limitUses", "lc"],
  ["held", "h"],
  ["settled", "hs"],
  ["overrun", "ho"],
  ["spent", "sp"],
  ["calls", "mc"],
  ["promptTokens", "mp"],
  ["completionTokens", "mo"],
  ["cachedTokens", "mh"],
  ["microdollars", "md"],
];
/** latency04 <-> l04, use09 <-> u09. */
const numberedNames = Array.from({ length: 100 }, (_, i) => String(i).padStart(2, "0")).flatMap((number) => [
  [`latency${number}` as Counted, `l${number}`] as const,
  [`use${number}` as Counted, `u${number}`] as const,
]);
const shortNames = new Map<string, string>([...plainNames, ...numberedNames]);
const longNames = new Map<string, string>([...shortNames].map(([long, short]) => [short, long]));

/** Drops counts with unknown names. */
export function packCounts(counts: Counts): string {
  const parts: string[] = [];
  for (const name in counts) {
    const count = counts[name as Counted];
    const short = shortNames.get(name);
    if (count !== undefined && count > 0 && short !== undefined) parts.push(`${short}=${Math.round(count)}`);
  }
  // join, not +=: V8 would keep a concatenated string as a rope, at four times the memory.
  return parts.join(" ");
}

export function unpackCounts(text: string): Counts {
  const counts: Record<string, number> = {};
  addPacked(counts, text);
  return counts as Counts;
}

/** Adds packed counts to a sum without allocating an object each: a day of a thousand rules is a hundred thousand texts. */
export function addPacked(sum: Record<string, number>, text: string): void {
  let from = 0;
  while (from < text.length) {
    const equals = text.indexOf("=", from);
    if (equals < 0) return;
    let end = text.indexOf(" ", equals);
    if (end < 0) end = text.length;
    const name = longNames.get(text.slice(from, equals));
    if (name !== undefined) sum[name] = (sum[name] ?? 0) + Number(text.slice(equals + 1, end));
    from = end + 1;
  }
}

/** Adds counts to a sum. */
export function addCounts(sum: Record<string, number>, counts: Counts): void {
  for (const name in counts) sum[name] = (sum[name] ?? 0) + (counts[name as Counted] ?? 0);
}
