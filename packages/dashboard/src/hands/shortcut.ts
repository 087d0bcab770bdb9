/** Which shortcut a key press is. Pure. */

type Shortcut = "palette" | "search" | "keys";

interface Press {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
}

/** Single characters belong to the field that is typed in; Ctrl-K works there too. */
export function shortcutOf(
  { key, ctrlKey, metaKey, altKey, shiftKey }: Press,
  isTyping: boolean,
): Shortcut | undefined {
  if (altKey) return undefined;
  if (ctrlKey || metaKey) return key.toLowerCase() === "k" && !shiftKey && ctrlKey !== metaKey ? "palette" : undefined;
  if (isTyping) return undefined;
  // Of Shift nothing is asked: on some keyboards the slash needs it.
  if (key === "/") return "search";
  return key === "?" ? "keys" : undefined;
}
