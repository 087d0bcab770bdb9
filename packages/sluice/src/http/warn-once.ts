/** Warnings about an application's configuration: each is emitted once per process, as a warning and never as an error. */

const told = new Set<string>();

/** `code` names the mistake; the message is the remedy. `about` distinguishes mistakes of one kind. */
export function warnOnce(code: string, message: string, about = ""): void {
  const mistake = `${code} ${about}`;
  if (told.has(mistake) || told.size >= MOST_TOLD) return;
  told.add(mistake);
  process.emitWarning(message, { type: "SluiceWarning", code });
}

/** Bounded, because rules may come and go for as long as the process lives. */
const MOST_TOLD = 1_000;
