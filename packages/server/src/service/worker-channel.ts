/**
 * The IPC channel between the first process and its workers, and every message on it. Losing a message to a process that is just ending is
 * not an error: without a send callback Node would emit an unhandled "error" event and crash the sender.
 */
import type { Worker } from "node:cluster";
import type { Socket } from "node:net";
import type { PortName } from "./open-ports.js";
import type { CloseOptions, ServiceSummary } from "./service.js";

export type WorkerMessage =
  | { readonly sluice: "ready"; readonly service: ServiceSummary }
  /** `isMisuse`: caused by an invalid setting. */
  | { readonly sluice: "failed"; readonly error: string; readonly isMisuse: boolean }
  | { readonly sluice: "metrics?"; readonly id: number }
  /** Requests a port, as the worker's settings have it. */
  | { readonly sluice: "port?"; readonly name: PortName; readonly host: string; readonly port: number }
  | { readonly sluice: "serve"; readonly name: PortName }
  | { readonly sluice: "close"; readonly name: PortName };

export type FirstMessage =
  | ({ readonly sluice: "stop" } & CloseOptions)
  /** No text: a worker did not answer. */
  | { readonly sluice: "metrics"; readonly id: number; readonly text?: string | undefined }
  | { readonly sluice: "port"; readonly name: PortName; readonly number: number | undefined }
  /** Comes with its socket. */
  | { readonly sluice: "connection"; readonly name: PortName }
  /** No more connections follow. */
  | { readonly sluice: "closed"; readonly name: PortName };

/** Returns whether the worker is still connected. */
export function sendToWorker(worker: Worker, message: FirstMessage): boolean {
  const isConnected = worker.isConnected();
  if (isConnected) worker.send(message, () => undefined);
  return isConnected;
}

/** Returns whether the worker is connected; if not, the caller still owns the socket. `onSent` is called when the next one may be sent. */
export function sendConnection(
  worker: Worker,
  { name, socket }: { name: PortName; socket: Socket },
  onSent: () => void,
): boolean {
  const isConnected = worker.isConnected();
  if (isConnected) {
    worker.send({ sluice: "connection", name } satisfies FirstMessage, socket, { keepOpen: false }, () => onSent());
  }
  return isConnected;
}

/**
 * Resolves when the worker has exited. `once` of node:events would reject on a channel error: prom-client sends requests without a
 * callback, one may come too late for a worker, and the graceful shutdown would then fail.
 */
export function untilExit(worker: Pick<Worker, "once">): Promise<void> {
  return new Promise((resolve) => {
    worker.once("exit", () => resolve());
  });
}

export function sendToFirst(message: WorkerMessage): void {
  if (process.connected) process.send?.(message, () => undefined);
}
