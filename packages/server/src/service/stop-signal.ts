/** The signals that end the service: the first asks for a clean end, the second ends it at once. */
import { setTimeout as sleep } from "node:timers/promises";
import { putDrainNotice, readSuccessorNotice, removeDrainNotice } from "../instance/handover.js";
import type { Settings } from "../settings/settings.js";
import { portNumbers } from "./open-ports.js";

/** npm passes on a Ctrl-C that the terminal has already sent to every process of the group: that is one wish, not two. */
const SAME_WISH_MS = 500;

/** From the last answer to the end of the process: what is written then is little. */
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

/** Ends the service; a successor that starts meanwhile finds a notice, and waits for the ports. */
export async function drain(
  settings: Settings,
  signal: NodeJS.Signals,
  end: (delayMs: number) => Promise<void>,
): Promise<void> {
  const folder = settings["data-folder"];
  // Ctrl-C comes from a person who waits; SIGTERM from an orchestrator, whose load balancer does not know of it yet.
  const delayMs = signal === "SIGINT" ? 0 : settings["drain-delay"];
  // Waiting for a successor and then for answers may take the timeout twice.
  const untilMs = Date.now() + delayMs + 2 * settings["drain-timeout"] + END_MS;
  putDrainNotice(folder, { ports: portNumbers(settings), untilMs });
  try {
    await end(delayMs);
  } finally {
    removeDrainNotice(folder);
  }
}

const LOOK_MS = 20;

/** Resolves when no successor has started, or when it can serve; after the drain timeout at the latest. */
export async function untilSucceeded({ "data-folder": folder, "drain-timeout": timeoutMs }: Settings): Promise<void> {
  const endsAtMs = performance.now() + timeoutMs;
  while (performance.now() < endsAtMs && readSuccessorNotice(folder)?.isReady === false) await sleep(LOOK_MS);
}
