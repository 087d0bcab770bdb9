/** Entry point of the thread that `limit-worker.ts` starts: runs one task, posts the answer, and ends. */
import { parentPort, workerData } from "node:worker_threads";
import { lowerPriority } from "../../low-priority.js";
import { type LimitTask, runLimitTask } from "./limit-worker.js";

// Does nothing when imported outside a worker thread.
if (parentPort !== null) {
  lowerPriority();
  const answer = await runLimitTask(workerData as LimitTask);
  // Transfer the buffers instead of copying them.
  const transfer = "chunks" in answer ? answer.chunks.map(({ buffer }) => buffer as ArrayBuffer) : [];
  parentPort.postMessage(answer, transfer);
}
