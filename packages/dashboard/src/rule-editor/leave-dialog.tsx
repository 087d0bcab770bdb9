/** Asks what becomes of unsaved changes before the page is left. */
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
      <p>What you keep stays in this tab until you save or discard it. It is here when you come back to this page.</p>
    </Dialog>
  );
}
