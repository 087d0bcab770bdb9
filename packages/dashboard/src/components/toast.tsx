/** That something worked, said where one looks: over the page, wherever it is scrolled to. It stays until it is read and closed, or the next comes. */
import { useSyncExternalStore } from "react";

const STAYS_MS = 20_000;

let shown: { readonly text: string; readonly number: number } | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function become(text: string | undefined): void {
  clearTimeout(timer);
  shown = text === undefined ? undefined : { text, number: (shown?.number ?? 0) + 1 };
  if (text !== undefined) timer = setTimeout(() => become(undefined), STAYS_MS);
  for (const listener of listeners) listener();
}

export function toast(text: string): void {
  become(text);
}

export function Toasts() {
  const current = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
  return (
    <div className="toasts" role="status">
      {current !== undefined && (
        <div className="toast" key={current.number}>
          <span>{current.text}</span>
          <button type="button" className="button small" onClick={() => become(undefined)}>
            Close
          </button>
        </div>
      )}
    </div>
  );
}
