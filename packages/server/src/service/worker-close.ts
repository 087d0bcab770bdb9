/**
 * How workers close without losing a connection. The first process accepts for all of them (node:cluster) and hands each connection to a
 * worker that has taken its last one. A worker that has closed returns it, and with the last worker gone the rest is reset. So workers
 * close together, after the first process has handed over what clients had opened by then: it asks them how many connections came until
 * the number rests. Each question follows a turn of its event loop (what waited is accepted) on the channel that carries the connections,
 * so every count includes what was handed over before it. A first process that is held up asks later, and the workers wait.
 */
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { acceptedHere, untilQueueIsEmpty } from "../http/accept-queue.js";
import { sendToFirst, sendToWorker } from "./worker-channel.js";

type Message =
  | { readonly sluice: "may close?" }
  | { readonly sluice: "close" }
  | { readonly sluice: "accepted?" }
  | { readonly sluice: "accepted"; readonly count: number };

/** In the first process. */
export class WorkerClose {
  readonly #liveWorkers: () => Worker[];
  readonly #isEnding: () => boolean;
  readonly #asking = new Set<Worker>();
  readonly #counted = new Map<Worker, (count: number) => void>();
  #closing = false;

  /** `isEnding`: all workers are to end; otherwise one that ends leaves its connections to the others. */
  constructor({ liveWorkers, isEnding }: { liveWorkers: () => Worker[]; isEnding: () => boolean }) {
    this.#liveWorkers = liveWorkers;
    this.#isEnding = isEnding;
    cluster.on("message", (worker, message: Message) => {
      if (message.sluice === "accepted") this.#count(worker, message.count);
      if (message.sluice !== "may close?") return;
      this.#asking.add(worker);
      void this.#consider();
    });
    cluster.on("disconnect", (worker) => {
      this.#asking.delete(worker);
      this.#count(worker, 0);
      void this.#consider();
    });
  }

  async #consider(): Promise<void> {
    const all = this.#liveWorkers().every((worker) => this.#asking.has(worker));
    if (this.#closing || (this.#isEnding() && !all)) return;
    this.#closing = true;
    if (all) await untilQueueIsEmpty(() => this.#acceptedByAll());
    this.#closing = false;
    for (const worker of this.#asking) sendToWorker(worker, { sluice: "close" });
    this.#asking.clear();
  }

  async #acceptedByAll(): Promise<number> {
    const counts = await Promise.all(this.#liveWorkers().map((worker) => this.#ask(worker)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  #ask(worker: Worker): Promise<number> {
    return new Promise((resolve) => {
      this.#counted.set(worker, resolve);
      if (!sendToWorker(worker, { sluice: "accepted?" })) this.#count(worker, 0);
    });
  }

  #count(worker: Worker, count: number): void {
    this.#counted.get(worker)?.(count);
    this.#counted.delete(worker);
  }
}

/** In a worker: resolves when it may close its listeners. A first process that is gone or silent delays no worker. */
export async function mayClose({ timeoutMs }: { timeoutMs: number }): Promise<void> {
  if (!process.connected) return;
  const told = new Promise<void>((resolve) => {
    process.on("message", (message: Message) => {
      if (message.sluice === "accepted?") sendToFirst({ sluice: "accepted", count: acceptedHere() } satisfies Message);
      if (message.sluice === "close") resolve();
    });
  });
  sendToFirst({ sluice: "may close?" } satisfies Message);
  const stopped = new AbortController();
  const late = sleep(timeoutMs, undefined, { signal: stopped.signal }).catch(() => undefined);
  await Promise.race([told, once(process, "disconnect"), late]);
  stopped.abort();
}
