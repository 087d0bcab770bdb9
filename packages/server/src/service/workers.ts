/**
 * Several processes behind the same ports (node:cluster). The first process serves nothing: it starts workers, replaces those that die,
 * adds up their metrics, and passes on the signal to end.
 */
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { AggregatorRegistry, type Registry } from "prom-client";
import type { Log } from "../log.js";
import type { Settings } from "../settings/settings.js";
import type { ServiceSummary } from "./serve.js";
import { startService } from "./service.js";
import { drainDelayMs, stopSignal } from "./stop-signal.js";
import { sendToFirst, sendToWorker } from "./worker-channel.js";
import { mayClose, WorkerClose } from "./worker-close.js";

/** Messages between workers and the first process. */
type Message =
  | { readonly sluice: "ready"; readonly service: ServiceSummary }
  | { readonly sluice: "failed"; readonly error: string }
  | { readonly sluice: "stop"; readonly delayMs: number }
  | { readonly sluice: "metrics?"; readonly id: number }
  | { readonly sluice: "metrics"; readonly id: number; readonly text?: string | undefined };

/** A worker that dies at once would otherwise be started as fast as the machine can. */
const RESTART_PAUSE_MS = 1_000;

export async function superviseWorkers(options: {
  settings: Settings;
  log: Log;
  onReady: (service: ServiceSummary) => void;
}): Promise<number> {
  const { settings, log, onReady } = options;
  const aggregator = new AggregatorRegistry();
  let ending = false;
  new WorkerClose({ liveWorkers, isEnding: () => ending });
  const stop = stopSignal(() => {
    for (const worker of liveWorkers()) worker.process.kill("SIGKILL");
    process.exit(1);
  });
  const answerMetrics = async (worker: Worker, id: number): Promise<void> => {
    // Without a text: a worker did not answer. The caller must not wait for ever.
    const text = await aggregator.clusterMetrics().catch(() => undefined);
    sendToWorker(worker, { sluice: "metrics", id, text } satisfies Message);
  };
  cluster.on("message", (worker, message: Message) => {
    if (message.sluice === "metrics?") void answerMetrics(worker, message.id).catch(() => undefined);
  });
  cluster.on("exit", (worker, code, signal) => {
    if (ending) return;
    log.error("a worker ended; another takes its place", { pid: worker.process.pid, code, signal });
    void sleep(RESTART_PAUSE_MS).then(() => (ending ? undefined : cluster.fork()));
  });

  try {
    // The first alone: it makes the token file and the database that the others then find.
    const first = await startWorker();
    await Promise.all(Array.from({ length: settings.workers - 1 }, startWorker));
    onReady(first);
    const delayMs = drainDelayMs(settings, await stop);
    ending = true;
    log.info("graceful shutdown: lame duck, then the workers drain", { delayMs });
    await endWorkers(delayMs);
  } finally {
    ending = true;
    await endWorkers(0);
  }
  return 0;
}

function liveWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

async function endWorkers(delayMs: number): Promise<void> {
  await Promise.all(
    liveWorkers().map(async (worker) => {
      const ended = once(worker, "exit");
      if (!sendToWorker(worker, { sluice: "stop", delayMs } satisfies Message)) worker.process.kill("SIGKILL");
      await ended;
    }),
  );
}

/** Resolves when it serves; rejects with its own words if it cannot. */
function startWorker(): Promise<ServiceSummary> {
  const worker = cluster.fork();
  return new Promise((resolve, reject) => {
    worker.on("message", (message: Message) => {
      if (message.sluice === "ready") resolve(message.service);
      else if (message.sluice === "failed") reject(new Error(message.error));
    });
    worker.once("exit", (code) => reject(new Error(`a worker ended with status ${code} before it served`)));
  });
}

export async function runWorker({ settings, log }: { settings: Settings; log: Log }): Promise<number> {
  const asked = new Map<number, (text: string | undefined) => void>();
  let lastId = 0;
  let stopAfter: (delayMs: number) => void = () => undefined;
  const stop = new Promise<number>((resolve) => {
    stopAfter = resolve;
  });
  // A terminal's Ctrl-C reaches every process; the first process passes on what it means.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => stopAfter(settings["drain-delay"]));
  process.on("disconnect", () => stopAfter(0));
  process.on("message", (message: Message) => {
    if (message.sluice === "stop") stopAfter(message.delayMs);
    if (message.sluice !== "metrics") return;
    asked.get(message.id)?.(message.text);
    asked.delete(message.id);
  });
  const allMetrics = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      asked.set(id, (text) =>
        text === undefined ? reject(new Error("a worker does not tell its metrics")) : resolve(text),
      );
      say({ sluice: "metrics?", id });
    });
  const service = await startService({ settings, log, allMetrics, onRegistry: shareRegistry }).catch(
    (error: unknown) => {
      say({ sluice: "failed", error: (error as Error).message });
      throw error;
    },
  );
  const { close, ...summary } = service;
  say({ sluice: "ready", service: { ...summary, rules: service.rules, rulesVersion: service.rulesVersion } });
  await close({ delayMs: await stop, mayClose: () => mayClose({ timeoutMs: settings["drain-timeout"] }) });
  process.disconnect?.();
  return 0;
}

/** Lets the first process's aggregator ask this worker for its numbers. */
function shareRegistry(registry: Registry): void {
  AggregatorRegistry.setRegistries([registry]);
  new AggregatorRegistry();
}

function say(message: Message): void {
  sendToFirst(message);
}
