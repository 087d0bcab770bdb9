/**
 * `sluice serve`: one process, or several workers behind the same ports; one start screen; graceful shutdown on SIGTERM and SIGINT.
 * With workers, the first process only holds the ports and loads nothing else of the service.
 */
import { readFileSync, statSync } from "node:fs";
import type { WaitingListener } from "../http/waiting-listener.js";
import { removeSuccessorNotice } from "../instance/handover.js";
import { createLog } from "../log.js";
import { packageVersion } from "../own-package.js";
import { schemeOf } from "../printable.js";
import { ignoredVariables, type Settings } from "../settings/settings.js";
import type { Ports, WhenTaken } from "./open-ports.js";
import type { ServiceSummary } from "./service.js";
import { startScreen } from "./start-screen.js";
import { drain, stopSignal, untilSucceeded } from "./stop-signal.js";

interface ServeOptions {
  /** Absent while a predecessor serves on them: this process opens them once it is ready. */
  readonly ports?: Ports<WaitingListener> | undefined;
  readonly whenTaken: WhenTaken;
}

/** Resolves with the exit status when the service has ended. */
export async function serve(settings: Settings, { ports, whenTaken }: ServeOptions): Promise<number> {
  const log = createLog(settings["log-level"]);
  for (const { name, why } of ignoredVariables()) log.warn(`the variable ${name} is ignored: ${why}`);
  const onReady = (service: ServiceSummary): void => printScreen(settings, service);
  if (settings.workers > 1 && ports !== undefined) {
    const { superviseWorkers } = await import("./workers.js");
    return await superviseWorkers({ settings, log, ports, onReady });
  }
  // Install the handlers before printing anything: a supervisor may stop the service as soon as it reads that it is up.
  const stopped = stopSignal(() => process.exit(1));
  const { startService } = await import("./service.js");
  const service = await startService({ settings, log, ports, whenTaken });
  removeSuccessorNotice(settings["data-folder"]);
  onReady(service);
  await drain(settings, await stopped, async (delayMs) => {
    log.info("graceful shutdown: lame duck, then requests under way are answered", { delayMs });
    await service.close({ delayMs, whenServed: () => untilSucceeded(settings) });
  });
  return 0;
}

function printScreen(settings: Settings, service: ServiceSummary): void {
  process.stdout.write(
    startScreen({
      ...service,
      adminToken: shownToken(service.adminTokenFile),
      rules: service.rules,
      rulesVersion: service.rulesVersion,
      version: packageVersion(),
      upstream: settings.upstream,
      store: schemeOf(settings.store),
      rulesSource:
        settings.rules ??
        (settings.database === undefined ? `SQLite in ${settings["data-folder"]}` : schemeOf(settings.database)),
      workers: settings.workers,
      apiToken: settings["api-token"] !== undefined,
    }),
  );
}

/**
 * The admin token to print: always on a terminal, otherwise only if this start created its file. A log should not contain it again after
 * every restart.
 */
function shownToken(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  const isNew = statSync(file).mtimeMs >= performance.timeOrigin;
  return isNew || process.stdout.isTTY ? readFileSync(file, "utf8").trim() : undefined;
}
