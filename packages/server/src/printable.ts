/**
 * Makes untrusted text safe for a terminal or a log: keys contain client input, messages and rules are written by others. Control
 * characters could drive the terminal (escape sequences), and bidirectional ones make text read as something else. Pure.
 */

/** C0 and C1 controls, formatting and bidirectional characters, line and paragraph separators, halves of surrogate pairs. */
const UNPRINTABLE = /\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\p{Cs}/gu;
/** Characters that JSON leaves unescaped although terminals interpret them; JSON itself escapes C0 controls. */
const leftByJson = /[\u007f-\u009f]|\p{Cf}|\p{Zl}|\p{Zp}/gu;

/** Replaces each with a dot. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, "·");
}

/** The same, but keeps line breaks. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** As JSON with the same meaning. */
export function printableJson(value: unknown, indent = 2): string {
  return escapeInJson(JSON.stringify(value, null, indent));
}

/** JSON in, equivalent JSON out. Also works on YAML's double-quoted strings, which have the same escapes. */
export function escapeInJson(json: string): string {
  return json.replace(leftByJson, escaped);
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/** The scheme of a store's or database's URL: the rest may contain a password. */
export function schemeOf(url: string): string {
  return url.split(":")[0]!;
}
