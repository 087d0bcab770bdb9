/** Guesses which name was meant by a misspelled one. Pure. */

/** Nobody misspells a name into one much longer: the quadratic work is for short ones only. */
const LONGEST_GUESSED = 64;

/** The closest name by edit distance, if it is close enough to be a slip of the hand rather than another word. */
export function nearestName(written: string, names: Iterable<string>): string | undefined {
  if (written.length > LONGEST_GUESSED) return undefined;
  const farthest = Math.max(1, Math.floor(written.length / 3));
  let nearest: string | undefined;
  let least = farthest + 1;
  for (const name of names) {
    // The difference in length is a lower bound; it also spares long input the quadratic work.
    if (Math.abs(name.length - written.length) >= least) continue;
    const distance = editDistance(written.toLowerCase(), name.toLowerCase());
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

/** Levenshtein's: insertions, deletions and substitutions, one row at a time. */
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
