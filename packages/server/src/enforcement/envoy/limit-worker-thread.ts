/** The thread that `limit-worker.ts` starts: reads what it is given, answers, and ends. */
import { parentPort, workerData } from "node:worker_threads";
import { type LimitTask, runLimitTask } from "./limit-worker.js";

// Only a thread has a parent: whoever imports this file otherwise gets nothing done.
if (parentPort !== null) {
  const answer = await runLimitTask(workerData as LimitTask);
  // Handed over rather than copied.
  const transfer = "chunks" in answer ? answer.chunks.map(({ buffer }) => buffer as ArrayBuffer) : [];
  parentPort.postMessage(answer, transfer);
}
