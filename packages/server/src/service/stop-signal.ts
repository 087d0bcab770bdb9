/** The signals that end the service: the first asks for a clean end, the second ends it at once. */
import type { Settings } from "../settings/settings.js";

/** npm passes on a Ctrl-C that the terminal has already sent to every process of the group: that is one wish, not two. */
const SAME_WISH_MS = 500;

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

/** Ctrl-C comes from a person who waits; SIGTERM from an orchestrator, whose load balancer does not know of it yet. */
export function drainDelayMs(settings: Settings, signal: NodeJS.Signals): number {
  return signal === "SIGINT" ? 0 : settings["drain-delay"];
}
