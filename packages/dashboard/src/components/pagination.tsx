/** Cursor pagination, newest first: a page is identified by the entry that it comes after. */
import { useState } from "react";

interface Pages {
  readonly before: number | undefined;
  readonly canGoBack: boolean;
  older(next: number): void;
  newer(): void;
}

export function usePages(start?: number): Pages {
  const [stack, setStack] = useState<readonly number[]>(start === undefined ? [] : [start]);
  return {
    before: stack.at(-1),
    canGoBack: stack.length > 0,
    // While a page loads, the previous one is still shown with its button: a second click requests the same page.
    older: (next) => setStack(stack.at(-1) === next ? stack : [...stack, next]),
    newer: () => setStack(stack.slice(0, -1)),
  };
}

export function Older({ pages, next }: { pages: Pages; next: number | undefined }) {
  if (next === undefined && !pages.canGoBack) return null;
  return (
    <div className="pager">
      <button type="button" className="button small" disabled={!pages.canGoBack} onClick={pages.newer}>
        Newer
      </button>
      <button
        type="button"
        className="button small"
        disabled={next === undefined}
        onClick={() => next !== undefined && pages.older(next)}
      >
        Older
      </button>
    </div>
  );
}
