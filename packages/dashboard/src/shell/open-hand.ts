/** Which keyboard dialog is open: the command palette, or the list of shortcuts. One at a time. */

type Hand = "palette" | "keys";

let shown: Hand | undefined;
const listeners = new Set<() => void>();

export function openHand(hand: Hand | undefined): void {
  shown = hand;
  for (const listener of listeners) listener();
}

export function subscribeHand(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function currentHand(): Hand | undefined {
  return shown;
}

export const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "");
