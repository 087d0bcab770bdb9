/** The thread that `traffic-worker.ts` starts: reads the traffic, answers, and ends. */
import { parentPort, workerData } from "node:worker_threads";
import { runTrafficTask, type TrafficTask } from "./traffic-worker.js";

// Only a thread has a parent: whoever imports this file otherwise gets nothing done.
if (parentPort !== null) parentPort.postMessage(await runTrafficTask(workerData as TrafficTask));
