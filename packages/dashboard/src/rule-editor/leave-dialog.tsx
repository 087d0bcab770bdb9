/** Confirms leaving a page with unsaved changes: keep them, discard them, or stay. */
import { Dialog } from "../components/dialog.js";

interface LeaveDialogProps {
  readonly onStay: () => void;
  readonly onLeave: () => void;
  readonly onDiscard: () => void;
}

export function LeaveDialog({ onStay, onLeave, onDiscard }: LeaveDialogProps) {
  return (
    <Dialog
      title="Leave with unsaved changes?"
      onClose={onStay}
      cancel="Stay"
      onSubmit={onLeave}
      footer={
        <>
          <button
            type="button"
            className="button bad"
            onClick={() => {
              onDiscard();
              onLeave();
            }}
          >
            Discard and leave
          </button>
          <button type="submit" className="button main">
            Keep and leave
          </button>
        </>
      }
    >
      <p>This tab keeps the changes until you save or discard them. They are here when you come back to this page.</p>
    </Dialog>
  );
}
