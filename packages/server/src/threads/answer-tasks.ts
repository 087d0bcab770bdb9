/**
 * The thread's side of `run-in-thread.ts`: loads its code and answers tasks until it is terminated. A task that throws ends the thread with
 * that error.
 */
import { parentPort, type TransferListItem } from "node:worker_threads";
import { lowerPriority } from "./low-priority.js";

export function answerTasks<Task, Answer>(options: {
  /** Imports the code: it is loaded at low priority, too. */
  readonly load: () => Promise<(task: Task) => Promise<Answer>>;
  /** What of an answer is transferred instead of copied. */
  readonly transferOf?: (answer: Answer) => readonly TransferListItem[];
}): void {
  const { load, transferOf = () => [] } = options;
  const port = parentPort;
  // Does nothing when imported outside a worker thread.
  if (port === null) return;
  lowerPriority();
  const loaded = load();
  port.on("message", async (task: Task) => {
    const run = await loaded;
    const answer = await run(task);
    port.postMessage(answer, transferOf(answer));
  });
}
