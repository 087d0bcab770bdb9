/**
 * Makes a server's text safe for a message: quoted, of bounded length, with everything but printable ASCII escaped, so that it can neither
 * flood a log nor forge a log line. Pure.
 */
export function printable(text: string, most: number): string {
  return `"${escaped(text, most)}"`;
}

/** Without quotes, for texts from Redis that a message embeds as they are. */
export function escaped(text: string, most: number): string {
  const start = text.length > most ? `${text.slice(0, most)}…` : text;
  return start.replace(/[^\x20-\x7e…]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
