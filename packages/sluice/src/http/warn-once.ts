/** Warnings about an application's set-up: each is emitted once per process, as a warning and never as an error. */

const told = new Set<string>();

/** `code` names the mistake; the message says what to do. `about` tells mistakes of one kind apart. */
export function warnOnce(code: string, message: string, about = ""): void {
  const mistake = `${code} ${about}`;
  if (told.has(mistake) || told.size >= MOST_TOLD) return;
  told.add(mistake);
  process.emitWarning(message, { type: "SluiceWarning", code });
}

/** Rules may come and go for as long as the process lives. */
const MOST_TOLD = 1_000;
