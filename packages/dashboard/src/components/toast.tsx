/**
 * A success message above the page, visible at any scroll position. It stays until it is closed or replaced. A change of rules can be
 * undone from here: this restores the previous version, unless someone has changed the rules since.
 */
import { useState, useSyncExternalStore } from "react";
import { rulesChanged } from "../api/queries.js";
import { request } from "../api/request.js";
import type { AppliedView } from "../api/shapes.js";

const STAYS_MS = 20_000;

interface Shown {
  readonly text: string;
  readonly number: number;
  readonly undo: Undoable | undefined;
}

interface Undoable {
  /** The version that Undo reverts. */
  readonly version: number;
  /** Called with the new version, which has the previous rules. */
  readonly onUndone?: (made: number) => void;
}

let shown: Shown | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function become(text: string | undefined, undo?: Undoable): void {
  clearTimeout(timer);
  shown = text === undefined ? undefined : { text, undo, number: (shown?.number ?? 0) + 1 };
  if (text !== undefined) timer = setTimeout(() => become(undefined), STAYS_MS);
  for (const listener of listeners) listener();
}

/** `undo`: the version just created, if it can be reverted. */
export function toast(text: string, undo?: Undoable): void {
  become(text, undo);
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
          <div className="buttons">
            {current.undo !== undefined && <Undo {...current.undo} />}
            <button type="button" className="button small" onClick={() => become(undefined)}>
              Close
            </button>
          </div>
        </div>
      )}
    </div>
  );
}

function Undo({ version, onUndone }: Undoable) {
  const [isWorking, setIsWorking] = useState(false);
  const undo = async (): Promise<void> => {
    setIsWorking(true);
    try {
      const { version: made } = await request<AppliedView>(`/versions/${version - 1}/rollback`, {
        method: "POST",
        ifMatch: version,
        query: { message: `undo version ${version}` },
      });
      await rulesChanged();
      onUndone?.(made);
      become(`Undone: the rules are those of version ${version - 1} again, as version ${made}.`);
    } catch (error) {
      become(`Not undone: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  return (
    <button type="button" className="button small" disabled={isWorking} onClick={() => void undo()}>
      Undo
    </button>
  );
}
