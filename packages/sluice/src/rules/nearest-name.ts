/** Guesses which name a misspelled one was meant to be. Pure. */

/** Nobody misspells a name into a much longer one: the quadratic work is only for short ones. */
const LONGEST_GUESSED = 64;

/** The closest name by edit distance, if it is close enough to be a typo rather than another word. */
export function nearestName(written: string, names: Iterable<string>): string | undefined {
  if (written.length > LONGEST_GUESSED) return undefined;
  const farthest = Math.max(1, Math.floor(written.length / 3));
  let nearest: string | undefined;
  let least = farthest + 1;
  for (const name of names) {
    // The difference in length is a lower bound, and saves the quadratic work for long input.
    if (Math.abs(name.length - written.length) >= least) continue;
    const distance = editDistance(written.toLowerCase(), name.toLowerCase());
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

/** Levenshtein distance: insertions, deletions and substitutions, one row at a time. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const substituted = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}
