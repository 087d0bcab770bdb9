/** The thread that `read-apart.ts` starts: reads the one file that it is given, answers, and ends. */
import { parentPort, workerData } from "node:worker_threads";
import { readAndValidate } from "./read-apart.js";

// Only a thread has a parent: whoever imports this file otherwise gets nothing done.
parentPort?.postMessage(await readAndValidate(workerData as string));
