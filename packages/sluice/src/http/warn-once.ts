/** Warnings about an application's set-up: each told once per process, as a warning and never as an error. */

const told = new Set<string>();

/** `code` names the mistake; the message says what to do. */
export function warnOnce(code: string, message: string): void {
  if (told.has(code)) return;
  told.add(code);
  process.emitWarning(message, { type: "SluiceWarning", code });
}
