/** Signals that stop the service: the first requests a graceful shutdown, the second exits at once. */
import { setTimeout as sleep } from "node:timers/promises";
import { putDrainNotice, readSuccessorNotice, removeDrainNotice } from "../instance/handover.js";
import type { Settings } from "../settings/settings.js";
import { portNumbers } from "./open-ports.js";

/** npm forwards a Ctrl-C that the terminal has already sent to the whole process group: treat both as one. */
const SAME_WISH_MS = 500;

/** Allowance from the last answer to the end of the process, for final writes. */
const END_MS = 10_000;

/** Resolves at the first SIGTERM or SIGINT. */
export function stopSignal(atOnce: () => void): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstMs: number | undefined;
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.on(signal, () => {
        const nowMs = performance.now();
        firstMs ??= nowMs;
        if (nowMs - firstMs > SAME_WISH_MS) atOnce();
        else resolve(signal);
      });
    }
  });
}

/** Shuts the service down. Leaves a notice, so that a successor that starts meanwhile waits for the ports. */
export async function drain(
  settings: Settings,
  signal: NodeJS.Signals,
  end: (delayMs: number) => Promise<void>,
): Promise<void> {
  const folder = settings["data-folder"];
  // Ctrl-C comes from a person, who is waiting. SIGTERM comes from an orchestrator, whose load balancer has not noticed yet.
  const delayMs = signal === "SIGINT" ? 0 : settings["drain-delay"];
  // Waiting for a successor and then for answers can each take the drain timeout.
  const untilMs = Date.now() + delayMs + 2 * settings["drain-timeout"] + END_MS;
  putDrainNotice(folder, { ports: portNumbers(settings), untilMs });
  try {
    await end(delayMs);
  } finally {
    removeDrainNotice(folder);
  }
}

const LOOK_MS = 20;

/** Resolves when a successor can serve, or if none has started; after the drain timeout at the latest. */
export async function untilSucceeded({ "data-folder": folder, "drain-timeout": timeoutMs }: Settings): Promise<void> {
  const endsAtMs = performance.now() + timeoutMs;
  while (performance.now() < endsAtMs && readSuccessorNotice(folder)?.isReady === false) await sleep(LOOK_MS);
}
