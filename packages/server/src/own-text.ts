/** Strings that are kept in memory, as a whole or by their digest. Pure. */

/** V8 slices longer substrings without copying: keeping one would keep the whole line in memory. */
const LONGEST_COPIED = 12;

/** The same string, as a copy that keeps nothing else alive. */
export function ownText(text: string): string {
  return text.length > LONGEST_COPIED ? (JSON.parse(JSON.stringify(text)) as string) : text;
}

/** Bytes for a digest, distinct for distinct strings: in UTF-8 all lone surrogates would be equal. */
export function bytesOf(text: string): Buffer {
  return Buffer.from(text, LONE_SURROGATE.test(text) ? "utf16le" : "utf8");
}

const LONE_SURROGATE = /\p{Surrogate}/u;
