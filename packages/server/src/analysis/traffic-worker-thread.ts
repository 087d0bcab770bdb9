/** Entry point of the thread that `traffic-worker.ts` starts: runs one task, posts the answer, and ends. */
import { parentPort, workerData } from "node:worker_threads";
import { runTrafficTask, type TrafficTask } from "./traffic-worker.js";

// Does nothing when imported outside a worker thread.
if (parentPort !== null) parentPort.postMessage(await runTrafficTask(workerData as TrafficTask));
