/** One of several processes behind the same ports. The first process provides connections, the stop signal and the aggregated metrics. */
import { AggregatorRegistry, type Registry } from "prom-client";
import { SluiceError } from "sluice";
import { createLog } from "../log.js";
import type { Settings } from "../settings/settings.js";
import { handedPorts } from "./handed-ports.js";
import { type CloseOptions, type Service, startService } from "./service.js";
import { type FirstMessage, sendToFirst } from "./worker-channel.js";

/** Resolves with the exit status when the worker has ended. */
export async function runWorker(readSettings: () => Promise<Settings>): Promise<number> {
  try {
    const settings = await readSettings();
    const toldToEnd = untilToldToEnd(settings["drain-delay"]);
    const service = await start(settings);
    const { close, ...summary } = service;
    const { rules, rulesVersion } = service;
    sendToFirst({ sluice: "ready", service: { ...summary, rules, rulesVersion } });
    await close(await toldToEnd);
    return 0;
  } catch (error) {
    // The first process prints the error.
    const isMisuse = error instanceof SluiceError && error.code === "invalid-setting";
    sendToFirst({ sluice: "failed", error: (error as Error).message, isMisuse });
    return 1;
  } finally {
    process.disconnect?.();
  }
}

function untilToldToEnd(drainDelayMs: number): Promise<CloseOptions> {
  return new Promise((resolve) => {
    // A terminal's Ctrl-C and hang-up reach every process of the group; the first process decides what they mean.
    process.on("SIGINT", () => undefined);
    process.on("SIGHUP", () => undefined);
    process.on("SIGTERM", () => resolve({ delayMs: drainDelayMs }));
    process.on("disconnect", () => resolve({ delayMs: 0 }));
    process.on("message", (message: FirstMessage) => {
      if (message.sluice === "stop") resolve(message);
    });
  });
}

async function start(settings: Settings): Promise<Service> {
  const ports = await handedPorts(settings);
  const log = createLog(settings["log-level"]);
  return await startService({ settings, log, ports, allMetrics: askForMetrics(), onRegistry: shareRegistry });
}

/** Requests the metrics of all workers. */
function askForMetrics(): () => Promise<string> {
  const asked = new Map<number, (text: string | undefined) => void>();
  let lastId = 0;
  process.on("message", (message: FirstMessage) => {
    if (message.sluice !== "metrics") return;
    asked.get(message.id)?.(message.text);
    asked.delete(message.id);
  });
  return () =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      asked.set(id, (text) =>
        text === undefined ? reject(new Error("a worker does not tell its metrics")) : resolve(text),
      );
      sendToFirst({ sluice: "metrics?", id });
    });
}

/** Lets the first process's aggregator collect this worker's metrics. */
function shareRegistry(registry: Registry): void {
  AggregatorRegistry.setRegistries([registry]);
  new AggregatorRegistry();
}
