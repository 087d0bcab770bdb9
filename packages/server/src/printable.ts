/**
 * Text of others, made fit for a terminal or a log: keys are made of what clients sent, messages and rules are other people's. Control
 * characters would let them drive the terminal; those that turn the direction of text would make it read as something else. Pure.
 */

/** C0 and C1 controls, formatting and bidirectional characters, line and paragraph separators, halves of surrogate pairs. */
const UNPRINTABLE = /\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\p{Cs}/gu;
/** Characters that JSON leaves as they are, though terminals act on them: C0 controls are escaped by JSON itself. */
const leftByJson = /[\u007f-\u009f]|\p{Cf}|\p{Zl}|\p{Zp}/gu;

/** Each becomes a dot. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, "·");
}

/** The same for a text of several lines. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** As JSON that means the same. */
export function printableJson(value: unknown, indent = 2): string {
  return escapeInJson(JSON.stringify(value, null, indent));
}

/** JSON in, JSON of the same meaning out. Works on YAML's double-quoted text too, whose escapes are the same. */
export function escapeInJson(json: string): string {
  return json.replace(leftByJson, escaped);
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/** The scheme of a store's or database's URL: the rest may hold a password. */
export function schemeOf(url: string): string {
  return url.split(":")[0]!;
}
