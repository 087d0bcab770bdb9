/**
 * Several processes behind the same ports (node:cluster). The first process serves no requests: it holds the ports, starts workers,
 * replaces those that die and, on SIGHUP, all of them, aggregates their metrics, and forwards the stop signal.
 */
import cluster, { type Worker } from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import { AggregatorRegistry } from "prom-client";
import { SluiceError } from "sluice";
import type { WaitingListener } from "../http/waiting-listener.js";
import type { Log } from "../log.js";
import type { Settings } from "../settings/settings.js";
import { COLLECTOR_FLAGS } from "./collector-flags.js";
import type { Ports } from "./open-ports.js";
import { restartOnHangup } from "./rolling-restart.js";
import type { CloseOptions, ServiceSummary } from "./service.js";
import { SharedPorts } from "./shared-ports.js";
import { drain, stopSignal } from "./stop-signal.js";
import { sendToWorker, untilExit, type WorkerMessage } from "./worker-channel.js";

/** Keeps a crash loop from restarting workers as fast as the machine can. */
const RESTART_PAUSE_MS = 1_000;

interface WorkersOptions {
  readonly settings: Settings;
  readonly log: Log;
  readonly ports: Ports<WaitingListener>;
  readonly onReady: (service: ServiceSummary) => void;
}

export async function superviseWorkers({ settings, log, ports, onReady }: WorkersOptions): Promise<number> {
  // Flags given to this process come last, and win.
  cluster.setupPrimary({ execArgv: [...COLLECTOR_FLAGS, ...process.execArgv] });
  const workers = new Workers(log);
  new SharedPorts(ports, { isEnding: () => workers.isEnding });
  shareMetrics();
  const stop = stopSignal(() => {
    workers.kill();
    process.exit(1);
  });
  // Install it at once: without a handler, SIGHUP would kill the process.
  restartOnHangup({ workers, log });
  try {
    // Start one alone first: it creates the token file and the database that the others then find.
    const first = await workers.start();
    await Promise.all(Array.from({ length: settings.workers - 1 }, () => workers.start()));
    onReady(first);
    await drain(settings, await stop, async (delayMs) => {
      log.info("graceful shutdown: lame duck, then the workers drain", { delayMs });
      await workers.endAll(delayMs);
    });
  } finally {
    await workers.endAll(0);
  }
  return 0;
}

/** The active workers; each is replaced when it dies. */
class Workers {
  readonly #log: Log;
  /** Those that serve, up to their stop message. */
  readonly #serving = new Set<Worker>();
  #isEnding = false;

  constructor(log: Log) {
    this.#log = log;
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  get serving(): readonly Worker[] {
    return [...this.#serving];
  }

  /** Resolves when a new worker serves; rejects with its error message if it cannot. */
  start(): Promise<ServiceSummary> {
    const worker = cluster.fork();
    return new Promise((resolve, reject) => {
      // prom-client requests a worker's metrics without a callback: if the worker is just ending, the send fails, and the unhandled "error"
      // event would crash this process.
      worker.on("error", reject);
      worker.on("message", (message: WorkerMessage) => {
        if (message.sluice === "failed") reject(failure(message));
        if (message.sluice !== "ready") return;
        // It was asked to stop while it started, before it could handle messages.
        if (this.#isEnding) sendToWorker(worker, { sluice: "stop", delayMs: 0 });
        else this.#serving.add(worker);
        resolve(message.service);
      });
      worker.once("exit", (code, signal) => {
        reject(new Error(`a worker ended with status ${code} before it served`));
        if (this.#serving.delete(worker)) void this.#replace(worker, { code, signal });
      });
    });
  }

  /** Resolves when the worker has answered its requests in flight and exited. */
  async end(worker: Worker, how: CloseOptions): Promise<void> {
    this.#serving.delete(worker);
    if (worker.isDead()) return;
    const ended = untilExit(worker);
    if (!sendToWorker(worker, { sluice: "stop", ...how })) worker.process.kill("SIGKILL");
    await ended;
  }

  async endAll(delayMs: number): Promise<void> {
    this.#isEnding = true;
    await Promise.all(liveWorkers().map((worker) => this.end(worker, { delayMs })));
  }

  kill(): void {
    for (const worker of liveWorkers()) worker.process.kill("SIGKILL");
  }

  async #replace(worker: Worker, how: { code: number; signal: string }): Promise<void> {
    this.#log.error("a worker ended; another takes its place", { pid: worker.process.pid, ...how });
    for (;;) {
      await sleep(RESTART_PAUSE_MS);
      if (this.#isEnding) return;
      const error = await this.start().then(
        () => undefined,
        (thrown: Error) => thrown,
      );
      if (error === undefined || this.#isEnding) return;
      this.#log.error("a worker does not start; another is tried", { error: error.message });
    }
  }
}

function liveWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

function failure({ error, isMisuse }: { error: string; isMisuse: boolean }): Error {
  return isMisuse ? new SluiceError("invalid-setting", error) : new Error(error);
}

function shareMetrics(): void {
  const aggregator = new AggregatorRegistry();
  cluster.on("message", async (worker, message: WorkerMessage) => {
    if (message.sluice !== "metrics?") return;
    // No text: a worker did not answer. The caller must not wait forever.
    const text = await aggregator.clusterMetrics().catch(() => undefined);
    sendToWorker(worker, { sluice: "metrics", id: message.id, text });
  });
}
