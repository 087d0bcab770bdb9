/** Opens a native modal dialog, which traps focus, closes on Escape and restores focus. */
import { type RefObject, useEffect, useRef } from "react";

interface Modal {
  readonly props: {
    readonly ref: RefObject<HTMLDialogElement | null>;
    onCancel(): void;
    onClose(): void;
  };
  close(): void;
}

/**
 * `onClosed` is called as the dialog closes. The browser's `close` event comes some milliseconds later: a click in between would open the
 * dialog once more, and the late event would close that one.
 */
export function useModal(onClosed: () => void): Modal {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    ref.current?.showModal();
  }, []);
  const close = (): void => {
    // First: it restores focus, which removing the element would not.
    ref.current?.close();
    onClosed();
  };
  return { props: { ref, onCancel: close, onClose: onClosed }, close };
}
