/** Texts that are remembered. Pure. */

/** V8 cuts a longer text out of its line without a copy: to remember it would keep the line. */
const LONGEST_COPIED = 12;

/** The same text, which keeps nothing else alive. */
export function ownText(text: string): string {
  return text.length > LONGEST_COPIED ? (JSON.parse(JSON.stringify(text)) as string) : text;
}
