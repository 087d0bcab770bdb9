/**
 * `sluice serve`: one process, or several workers behind the same ports; one printed screen; a clean end on SIGTERM and SIGINT.
 */
import cluster from "node:cluster";
import { storeKind } from "../instance/instance.js";
import { createLog } from "../log.js";
import { packageVersion } from "../own-package.js";
import type { Settings } from "../settings/settings.js";
import { checkEnvoyFolder } from "./envoy-settings.js";
import type { GrpcPort } from "./open-grpc-port.js";
import { type Service, startService } from "./service.js";
import { startScreen } from "./start-screen.js";
import { drainDelayMs, stopSignal } from "./stop-signal.js";
import { runWorker, superviseWorkers } from "./workers.js";

/** Resolves when the service has ended, with the exit status. `grpcPort`: open already, for a service without workers. */
export async function serve(settings: Settings, grpcPort?: GrpcPort): Promise<number> {
  const log = createLog(settings["log-level"]);
  if (cluster.isWorker) return await runWorker({ settings, log });
  if (settings.workers > 1) {
    checkEnvoyFolder(settings);
    return await superviseWorkers({ settings, log, onReady: (service) => printScreen(settings, service) });
  }
  // Before anything is printed: a supervisor that reads that the service is up may end it at once.
  const stopped = stopSignal(() => process.exit(1));
  const service = await startService({ settings, log, grpcPort });
  printScreen(settings, service);
  const delayMs = drainDelayMs(settings, await stopped);
  log.info("graceful shutdown: lame duck, then requests under way are answered", { delayMs });
  await service.close({ delayMs });
  return 0;
}

export type ServiceSummary = Omit<Service, "close">;

function printScreen(settings: Settings, service: ServiceSummary): void {
  process.stdout.write(
    startScreen({
      ...service,
      rules: service.rules,
      rulesVersion: service.rulesVersion,
      version: packageVersion(),
      upstream: settings.upstream,
      store: storeKind(settings.store),
      rulesSource:
        settings.rules ??
        (settings.database === undefined ? `SQLite in ${settings["data-folder"]}` : storeKind(settings.database)),
      workers: settings.workers,
      apiToken: settings["api-token"] !== undefined,
    }),
  );
}
