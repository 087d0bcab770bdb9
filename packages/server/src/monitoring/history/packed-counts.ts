/**
 * The counts of one series in one step, as a short text: `a=12 r=3 l04=15`. Both histories keep them so: a field for each
 * count would take several times as much. Pure.
 */
import type { Counted } from "./history.js";

export type Counts = Readonly<Partial<Record<Counted, number>>>;

const shortNames: Readonly<Record<string, string>> = {
  allowed: "a",
  refused: "r",
  shadowRefused: "s",
  candidateAllowed: "ca",
  candidateRefused: "cr",
  degraded: "d",
  storeErrors: "e",
};
const longNames = new Map(Object.entries(shortNames).map(([long, short]) => [short, long]));

export function packCounts(counts: Counts): string {
  const parts: string[] = [];
  for (const [name, count] of Object.entries(counts)) {
    if (count !== undefined && count > 0) parts.push(`${shortNames[name] ?? shortOf(name)}=${Math.round(count)}`);
  }
  return parts.join(" ");
}

export function unpackCounts(text: string): Counts {
  const counts: Record<string, number> = {};
  for (const part of text.split(" ")) {
    const at = part.indexOf("=");
    if (at > 0) counts[longOf(part.slice(0, at))] = Number(part.slice(at + 1));
  }
  return counts as Counts;
}

export function addCounts(one: Counts, other: Counts): Counts {
  const sum: Record<string, number | undefined> = { ...one };
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + (count ?? 0);
  return sum as Counts;
}

/** latency04 -> l04, use09 -> u09. */
function shortOf(name: string): string {
  return name.replace(/^latency/, "l").replace(/^use/, "u");
}

function longOf(name: string): string {
  return longNames.get(name) ?? name.replace(/^l(?=\d)/, "latency").replace(/^u(?=\d)/, "use");
}
