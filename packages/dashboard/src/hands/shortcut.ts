/** Maps a key press to a shortcut. Pure. */

type Shortcut = "palette" | "search" | "keys";

interface Press {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
}

/** In a text field single characters are input; Ctrl-K works there too. */
export function shortcutOf(
  { key, ctrlKey, metaKey, altKey, shiftKey }: Press,
  isTyping: boolean,
): Shortcut | undefined {
  if (altKey) return undefined;
  if (ctrlKey || metaKey) return key.toLowerCase() === "k" && !shiftKey && ctrlKey !== metaKey ? "palette" : undefined;
  if (isTyping) return undefined;
  // Ignores Shift: some keyboard layouts need it for the slash.
  if (key === "/") return "search";
  return key === "?" ? "keys" : undefined;
}
