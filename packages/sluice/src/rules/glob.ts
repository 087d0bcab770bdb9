/**
 * Globs: `*` matches any characters within a segment, `**` also across "/". A `**` that fills a whole segment in the middle may match no
 * segment at all, as in shells; but `/v1/**` does not match `/v1`. There is no escape character. This file splits a glob into tokens;
 * `glob-tree.ts` matches many at once. No RegExp is ever built from a pattern.
 */

export const LONGEST_PATTERN = 256;

/** Any characters but "/". */
export const STAR = -1;
/** Any characters. */
export const GLOBSTAR = -2;
/** Whole segments, each with its "/", or none. */
export const SEGMENTS = -3;

export type Wildcard = typeof STAR | typeof GLOBSTAR | typeof SEGMENTS;
/** A text, or a wildcard. */
type GlobToken = string | Wildcard;

export function isLiteral(pattern: string): boolean {
  return !pattern.includes("*");
}

/** Texts and wildcards alternate; empty texts are omitted. */
export function globTokens(pattern: string): GlobToken[] {
  if (pattern.length > LONGEST_PATTERN) throw new RangeError(`a glob has at most ${LONGEST_PATTERN} characters`);
  const tokens: GlobToken[] = [];
  for (let at = 0; at < pattern.length; ) {
    let end = pattern.indexOf("*", at);
    if (end === -1) end = pattern.length;
    if (end > at) tokens.push(pattern.slice(at, end));
    at = end;
    while (pattern[at] === "*") at++;
    const startsSegment = end === 0 || pattern[end - 1] === "/";
    if (at - end === 1) tokens.push(STAR);
    else if (at - end > 1) {
      const fillsSegment = startsSegment && pattern[at] === "/";
      tokens.push(fillsSegment ? SEGMENTS : GLOBSTAR);
      if (fillsSegment) at++;
    }
  }
  return tokens;
}
