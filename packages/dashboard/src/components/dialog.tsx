/**
 * A modal dialog: the browser's own, which holds the focus, closes on Escape and gives the focus back to what opened it.
 */
import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react";

export function Dialog({
  title,
  onClose,
  onSubmit,
  children,
  footer,
  cancel = "Cancel",
}: {
  title: string;
  onClose: () => void;
  onSubmit?: () => void;
  children: ReactNode;
  footer: ReactNode;
  cancel?: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onSubmit?.();
  };
  return (
    <dialog className="box" ref={dialog} aria-labelledby={titleId} onClose={onClose}>
      <form onSubmit={submit}>
        <h2 id={titleId}>{title}</h2>
        {children}
        <footer>
          <button type="button" className="button" onClick={() => dialog.current?.close()}>
            {cancel}
          </button>
          {footer}
        </footer>
      </form>
    </dialog>
  );
}
