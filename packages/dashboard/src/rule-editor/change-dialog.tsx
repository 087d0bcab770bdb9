/**
 * Confirms every change of rules. A dry run by the service provides the diff, the user gives a reason, and the change is applied only to
 * the version of that diff (optimistic locking). After a conflict, the dialog shows the others' changes before anything is overwritten.
 */
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useRef, useState } from "react";
import { rulesChanged } from "../api/queries.js";
import { Problem, request } from "../api/request.js";
import type { AppliedView } from "../api/shapes.js";
import { Field } from "../components/controls.js";
import { Dialog } from "../components/dialog.js";
import { Empty, Notice, ProblemNotice } from "../components/panel.js";
import { DiffView } from "./diff-view.js";

interface Change {
  readonly method: "PUT" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  /** The rule concerned; absent for all of them. */
  readonly rule?: string;
  /** The version that the change is based on. */
  readonly base: number;
}

interface ChangeDialogProps {
  readonly title: string;
  readonly verb: string;
  readonly isBad?: boolean;
  readonly change: Change;
  /** Shown above the diff. */
  readonly children?: ReactNode;
  readonly onClose: () => void;
  readonly onDone: (applied: AppliedView) => void;
}

export function ChangeDialog({ title, verb, isBad = false, change, children, onClose, onDone }: ChangeDialogProps) {
  const [base, setBase] = useState(change.base);
  const [message, setMessage] = useState("");
  const send = (dryRun: boolean) =>
    request<AppliedView>(change.path, {
      method: change.method,
      ...(change.body !== undefined && { body: change.body }),
      ifMatch: base,
      query: dryRun ? { dryRun: "true" } : { message: message.trim() === "" ? undefined : message.trim() },
    });
  const preview = useQuery({
    queryKey: ["dry-run", change, base],
    queryFn: () => send(true),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const make = useMutation({
    mutationFn: () => send(false),
    onSuccess: async (applied) => {
      await rulesChanged();
      onDone(applied);
    },
  });
  const sendOnce = useOneAtATime((onSettled) => make.mutate(undefined, { onSettled }));
  const conflict = [make.error, preview.error].find(isConflict);
  const isEmpty = preview.data !== undefined && preview.data.text === "no difference";
  const isReady = preview.data !== undefined && !isEmpty && conflict === undefined && !make.isPending;
  const takeOver = (version: number): void => {
    make.reset();
    setBase(version);
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => isReady && sendOnce()}
      footer={
        <button type="submit" className={`button main ${isBad ? "bad" : ""}`} disabled={!isReady}>
          {make.isPending ? "Working …" : verb}
        </button>
      }
    >
      {children}
      {preview.isPending && <Empty title="Asking what would change …" />}
      {conflict !== undefined && <Conflict problem={conflict} base={base} rule={change.rule} onTakeOver={takeOver} />}
      {preview.error !== null && conflict === undefined && (
        <ProblemNotice error={preview.error} title="This cannot be done" />
      )}
      {isEmpty && <Notice>Nothing would change.</Notice>}
      {preview.data !== undefined && !isEmpty && conflict === undefined && <DiffView diff={preview.data.diff} />}
      {preview.data?.warnings !== undefined && conflict === undefined && (
        <Notice tone="warn" title="Valid, but most likely not what you mean">
          <ul>
            {preview.data.warnings.map(({ path, message: text }) => (
              <li key={`${path} ${text}`}>{text}</li>
            ))}
          </ul>
        </Notice>
      )}
      <Field label="Reason" hint="Kept with the version and in the audit.">
        {(control) => (
          <input
            {...control}
            className="input"
            maxLength={1000}
            autoComplete="off"
            value={message}
            onChange={(event) => setMessage(event.target.value)}
          />
        )}
      </Field>
      {make.error !== null && conflict === undefined && (
        <ProblemNotice error={make.error} title="Nothing has changed" />
      )}
    </Dialog>
  );
}

/** Ignores a second click before the button is rendered disabled. */
function useOneAtATime(start: (onSettled: () => void) => void): () => void {
  const isRunning = useRef(false);
  return () => {
    if (isRunning.current) return;
    isRunning.current = true;
    start(() => {
      isRunning.current = false;
    });
  };
}

function isConflict(error: unknown): error is Problem {
  return error instanceof Problem && error.status === 412;
}

function Conflict({
  problem,
  base,
  rule,
  onTakeOver,
}: {
  problem: Problem;
  base: number;
  rule: string | undefined;
  onTakeOver: (version: number) => void;
}) {
  const { currentVersion, diff } = problem;
  const isSameRule = rule === undefined || diff?.changes.some((one) => one.rule === rule) !== false;
  return (
    <Notice tone="warn" title="Others have changed the rules meanwhile.">
      <p>
        You began from version {base}; the newest is {currentVersion ?? "another"}.{" "}
        {isSameRule
          ? "They changed the same as you: going on replaces what they did."
          : `They did not change ${rule}: going on keeps what they did.`}
      </p>
      {diff !== undefined && <DiffView diff={diff} />}
      {currentVersion !== undefined && (
        <p>
          <button type="button" className="button small" onClick={() => onTakeOver(currentVersion)}>
            Go on from version {currentVersion}
          </button>
        </p>
      )}
    </Notice>
  );
}
