/** The command palette's search: entries that match the typed words, best first. Pure. */
import { visible } from "../components/format.js";
import { keyAddress } from "../keys/key-address.js";

export interface Entry {
  readonly kind: "Page" | "Rule" | "Key" | "Help";
  readonly label: string;
  /** Also searched. */
  readonly about?: string;
  /** The URL; absent for the list of shortcuts. */
  readonly to?: string;
}

const MOST_FOUND = 12;

export function findEntries(entries: readonly Entry[], typed: string): Entry[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const ranked: { entry: Entry; rank: number }[] = [];
  for (const entry of entries) {
    const rank = rankOf(entry, words);
    if (rank !== undefined) ranked.push({ entry, rank });
  }
  // The sort is stable: at equal rank, pages come first, then rules in document order.
  return ranked
    .sort((a, b) => a.rank - b.rank)
    .slice(0, MOST_FOUND)
    .map(({ entry }) => entry);
}

/** 0: the label starts with the query; 1: a word of it does; 2: it contains every word; 3: the description does. */
function rankOf({ label, about = "" }: Entry, words: readonly string[]): number | undefined {
  if (words.length === 0) return 0;
  const name = label.toLowerCase();
  const text = words.join(" ");
  const at = name.indexOf(text);
  if (at === 0) return 0;
  if (at > 0 && /[^\p{L}\p{N}]/u.test(name[at - 1]!)) return 1;
  if (words.every((word) => name.includes(word))) return 2;
  const all = `${name} ${about.toLowerCase()}`;
  return words.every((word) => all.includes(word)) ? 3 : undefined;
}

export function keyEntry(attributes: Readonly<Record<string, string>>): Entry {
  const label = Object.entries(attributes).map(([name, value]) => `${name}=${value}`);
  return { kind: "Key", label: visible(label.join(" ")), to: keyAddress(attributes) };
}

/** Parses `user=42 region=eu`, the command line's notation; undefined if a part is no attribute. */
export function typedKey(typed: string): Record<string, string> | undefined {
  const parts = typed.trim().split(/\s+/);
  const pairs = parts.map((part) => /^([^=]+)=(.+)$/.exec(part));
  if (pairs.some((pair) => pair === null)) return undefined;
  return Object.fromEntries(pairs.map((pair) => [pair![1]!, pair![2]!]));
}
