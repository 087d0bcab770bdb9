/**
 * The channel between the first process and its workers. A message to one that is just ending is lost, and that is no error: without a
 * callback Node would emit it as an event that nobody listens to, and end the sender.
 */
import type { Worker } from "node:cluster";

/** Returns whether the worker can answer. */
export function sendToWorker(worker: Worker, message: object): boolean {
  const isConnected = worker.isConnected();
  if (isConnected) worker.send(message, () => undefined);
  return isConnected;
}

export function sendToFirst(message: object): void {
  if (process.connected) process.send?.(message, () => undefined);
}
