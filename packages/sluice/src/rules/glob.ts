/**
 * Globs: `*` stands for any characters within a segment, `**` also across "/". A `**` that fills a segment in the middle
 * may stand for no segment at all, as shells have it; but `/v1/**` does not match `/v1`. There is no escape.
 * No RegExp is ever built from a pattern: values come from attackers, and a match must not cost more than the length of
 * the value times the length of the pattern.
 */

export const LONGEST_PATTERN = 256;

export interface Glob {
  /** What stands before the first wildcard. */
  readonly prefix: string;
  /** The rest is a single `**`: the prefix alone decides. */
  readonly prefixDecides: boolean;
  /** The rest: character codes and the wildcards below. */
  readonly tokens: Int32Array;
}

const STAR = -1;
const GLOBSTAR = -2;
/** Whole segments, each with its "/", or none. */
const SEGMENTS = -3;
const SLASH = 47;
/** Shared: typed arrays are dear to make, and most globs end like this. */
const globstarAlone = Int32Array.of(GLOBSTAR);

export function isLiteral(pattern: string): boolean {
  return !pattern.includes("*");
}

export function compileGlob(pattern: string): Glob {
  if (pattern.length > LONGEST_PATTERN) throw new RangeError(`a glob has at most ${LONGEST_PATTERN} characters`);
  const firstStar = pattern.indexOf("*");
  const prefix = firstStar === -1 ? pattern : pattern.slice(0, firstStar);
  const tokens: number[] = [];
  for (let i = prefix.length; i < pattern.length; ) {
    if (pattern[i] !== "*") {
      tokens.push(pattern.charCodeAt(i++));
      continue;
    }
    let end = i;
    while (pattern[end] === "*") end++;
    const startsSegment = i === 0 || pattern[i - 1] === "/";
    if (end - i === 1) {
      tokens.push(STAR);
    } else if (startsSegment && pattern[end] === "/") {
      tokens.push(SEGMENTS);
      end++;
    } else {
      tokens.push(GLOBSTAR);
    }
    i = end;
  }
  const prefixDecides = tokens.length === 1 && tokens[0] === GLOBSTAR;
  return { prefix, prefixDecides, tokens: prefixDecides ? globstarAlone : Int32Array.from(tokens) };
}

export function matchesGlob(glob: Glob, value: string): boolean {
  if (!value.startsWith(glob.prefix)) return false;
  return glob.prefixDecides || matchesTokens(glob.tokens, value, glob.prefix.length);
}

// The positions in the pattern that the part of the value read so far can have reached. Matching is synchronous, so
// one set of buffers serves every call.
let reached = new Uint16Array(LONGEST_PATTERN + 1);
let reachedNext = new Uint16Array(LONGEST_PATTERN + 1);
const isMarked = new Uint8Array(LONGEST_PATTERN + 1);

/** Follows all positions at once, so that no pattern makes it backtrack. */
function matchesTokens(tokens: Glob["tokens"], value: string, from: number): boolean {
  let count = enter(tokens, 0, reached, 0);
  unmark(reached, count);
  for (let i = from; i < value.length; i++) {
    if (count === 0) return false;
    const code = value.charCodeAt(i);
    let countNext = 0;
    for (let k = 0; k < count; k++) {
      const position = reached[k]!;
      const token = tokens[position];
      if (token === code) {
        countNext = enter(tokens, position + 1, reachedNext, countNext);
      } else if (token === GLOBSTAR || (token === STAR && code !== SLASH) || (token === SEGMENTS && code === SLASH)) {
        countNext = enter(tokens, position, reachedNext, countNext);
      } else if (token === SEGMENTS && isMarked[position] === 0) {
        // In the middle of a segment, what follows the wildcard cannot begin yet.
        isMarked[position] = 1;
        reachedNext[countNext++] = position;
      }
    }
    unmark(reachedNext, countNext);
    [reached, reachedNext] = [reachedNext, reached];
    count = countNext;
  }
  for (let k = 0; k < count; k++) {
    if (reached[k] === tokens.length) return true;
  }
  return false;
}

/** Adds a position, and those behind it that need no character, each once. */
function enter(tokens: Glob["tokens"], position: number, into: Uint16Array, count: number): number {
  let filled = count;
  for (let next = position; isMarked[next] === 0; next++) {
    isMarked[next] = 1;
    into[filled++] = next;
    if (next === tokens.length || tokens[next]! >= 0) break;
  }
  return filled;
}

function unmark(positions: Uint16Array, count: number): void {
  for (let k = 0; k < count; k++) isMarked[positions[k]!] = 0;
}
