/**
 * The channel between the first process and its workers, and every message on it. A message to one that is just ending is lost, and that
 * is no error: without a callback Node would emit it as an event that nobody listens to, and end the sender.
 */
import type { Worker } from "node:cluster";
import type { Socket } from "node:net";
import type { PortName } from "./open-ports.js";
import type { CloseOptions, ServiceSummary } from "./service.js";

/** From a worker to the first process. */
export type WorkerMessage =
  | { readonly sluice: "ready"; readonly service: ServiceSummary }
  /** `isMisuse`: of the settings. */
  | { readonly sluice: "failed"; readonly error: string; readonly isMisuse: boolean }
  | { readonly sluice: "metrics?"; readonly id: number }
  /** The worker wants a port, as its settings have it. */
  | { readonly sluice: "port?"; readonly name: PortName; readonly host: string; readonly port: number }
  | { readonly sluice: "serve"; readonly name: PortName }
  | { readonly sluice: "close"; readonly name: PortName };

/** From the first process to a worker. */
export type FirstMessage =
  | ({ readonly sluice: "stop" } & CloseOptions)
  /** Without a text: a worker did not answer. */
  | { readonly sluice: "metrics"; readonly id: number; readonly text?: string | undefined }
  | { readonly sluice: "port"; readonly name: PortName; readonly number: number | undefined }
  /** With its socket. */
  | { readonly sluice: "connection"; readonly name: PortName }
  /** No more connections follow. */
  | { readonly sluice: "closed"; readonly name: PortName };

/** Returns whether the worker can answer. */
export function sendToWorker(worker: Worker, message: FirstMessage): boolean {
  const isConnected = worker.isConnected();
  if (isConnected) worker.send(message, () => undefined);
  return isConnected;
}

/** Returns whether the worker is there; the socket is still ours otherwise. `onSent`: another may follow. */
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

export function sendToFirst(message: WorkerMessage): void {
  if (process.connected) process.send?.(message, () => undefined);
}
