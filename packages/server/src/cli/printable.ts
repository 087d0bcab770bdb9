/**
 * Text of others, made fit for a terminal: keys are made of what clients sent, messages are other people's. Control characters would
 * let them drive the terminal; those that turn the direction of text would let them say something else than they are. Each becomes a dot. Pure.
 */
export function printable(text: string): string {
  return text.replace(/\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\p{Cs}/gu, "·");
}

/** The same for a text of several lines. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** As JSON that means the same: what `JSON.stringify` leaves as it is, though terminals act on it, is escaped too. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/[\u007f-\u009f]|\p{Cf}|\p{Zl}|\p{Zp}/gu, escaped);
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
