/**
 * Whether the service is reachable. Every answer and every event of the stream calls `heard`, every failed call `failed`.
 * The shell shows a banner from here, with the age of the figures on the screen.
 */
interface Contact {
  /** False from the first failure until the next answer or event. */
  readonly isUp: boolean;
  readonly lastHeardAtMs: number;
  /** Grows with each 401: the session has ended. */
  readonly signOuts: number;
}

let current: Contact = { isUp: true, lastHeardAtMs: Date.now(), signOuts: 0 };
const listeners = new Set<() => void>();

function become(next: Contact): void {
  // Times alone redraw nothing: the banner reads the age itself.
  const isShown = next.isUp !== current.isUp || next.signOuts !== current.signOuts;
  current = next;
  if (isShown) for (const listener of listeners) listener();
}

export const contact = {
  heard: () => become({ ...current, isUp: true, lastHeardAtMs: Date.now() }),
  failed: () => become({ ...current, isUp: false }),
  signedOut: () => become({ ...current, signOuts: current.signOuts + 1 }),
  current: () => current,
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};
