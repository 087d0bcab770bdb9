/**
 * Rolling restart: SIGHUP to the first process replaces every worker, one at a time, by one with the current code, settings and files. The
 * first process keeps the ports, and a worker ends only when its replacement serves, so no client is refused. If a new worker fails to
 * start, the rolling restart is aborted and the remaining workers stay.
 */
import type { Worker } from "node:cluster";
import type { Log } from "../log.js";
import type { CloseOptions } from "./service.js";

interface RollingRestart {
  readonly log: Pick<Log, "info" | "error">;
  readonly workers: {
    readonly isEnding: boolean;
    readonly serving: readonly Worker[];
    /** Resolves when a new worker serves. */
    start(): Promise<unknown>;
    end(worker: Worker, how: CloseOptions): Promise<void>;
  };
}

export function restartOnHangup(options: RollingRestart): void {
  let isRunning = false;
  let isAskedAgain = false;
  process.on("SIGHUP", async () => {
    isAskedAgain = true;
    if (isRunning) return;
    isRunning = true;
    // SIGHUP during a restart: workers already replaced may lack the latest change, so go round again.
    while (isAskedAgain && !options.workers.isEnding) {
      isAskedAgain = false;
      await replaceAll(options);
    }
    isRunning = false;
  });
}

async function replaceAll({ workers, log }: RollingRestart): Promise<void> {
  const before = workers.serving;
  log.info("rolling restart: each worker is replaced by a new one", { workers: before.length });
  for (const worker of before) {
    if (workers.isEnding) return;
    try {
      await workers.start();
    } catch (error) {
      if (!workers.isEnding) {
        log.error("rolling restart ended: a new worker does not start; the others stay", {
          error: (error as Error).message,
        });
      }
      return;
    }
    // The service stays ready: load balancers need not drain it.
    await workers.end(worker, { delayMs: 0, isReplaced: true });
  }
  log.info("rolling restart done", { workers: before.length });
}
