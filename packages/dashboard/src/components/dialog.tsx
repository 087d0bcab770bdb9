/** A modal dialog with a form. */
import { type FormEvent, type ReactNode, useId } from "react";
import { useModal } from "./use-modal.js";

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
  const modal = useModal(onClose);
  const titleId = useId();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onSubmit?.();
  };
  return (
    <dialog className="box" aria-labelledby={titleId} {...modal.props}>
      <form onSubmit={submit}>
        <h2 id={titleId}>{title}</h2>
        {children}
        <footer>
          <button type="button" className="button" onClick={modal.close}>
            {cancel}
          </button>
          {footer}
        </footer>
      </form>
    </dialog>
  );
}
