/** Texts that are remembered, whole or by their digest. Pure. */

/** V8 cuts a longer text out of its line without a copy: to remember it would keep the line. */
const LONGEST_COPIED = 12;

/** The same text, which keeps nothing else alive. */
export function ownText(text: string): string {
  return text.length > LONGEST_COPIED ? (JSON.parse(JSON.stringify(text)) as string) : text;
}

/** For a digest: the bytes of a text, others for every other text. In UTF-8 all lone surrogates are alike. */
export function bytesOf(text: string): Buffer {
  return Buffer.from(text, LONE_SURROGATE.test(text) ? "utf16le" : "utf8");
}

const LONE_SURROGATE = /\p{Surrogate}/u;
