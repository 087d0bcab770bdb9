/** The thread that `rule-worker.ts` starts: reads what it is given, answers, and ends. */
import { parentPort, workerData } from "node:worker_threads";
import { lowerPriority } from "../low-priority.js";
import { runTask, type Task } from "./rule-worker.js";

// Only a thread has a parent: whoever imports this file otherwise gets nothing done.
if (parentPort !== null) {
  lowerPriority();
  const read = await runTask(workerData as Task);
  // Handed over rather than copied.
  parentPort.postMessage(
    read,
    "document" in read && typeof read.document !== "string" ? [read.document.buffer as ArrayBuffer] : [],
  );
}
