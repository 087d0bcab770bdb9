/**
 * Audits changes of adaptive limits: summed per rule and written every ten minutes by the instance that made them, so that a limit that
 * changes every second does not flood the audit log.
 */
import type { Limiter, LimitMove } from "sluice";
import type { Configuration } from "../configuration/configuration.js";
import type { Log } from "../log.js";

interface Sum {
  moves: number;
  lowest: number;
  highest: number;
  from: number;
  to: number;
}

const EVERY_MS = 600_000;

export function noteLimitMoves(options: {
  limiter: Pick<Limiter, "on" | "off">;
  repository: Configuration["repository"];
  log: Log;
}): { close(): Promise<void> } {
  const { limiter, repository, log } = options;
  if (repository === undefined) return { close: async () => undefined };
  const sums = new Map<string, Sum>();
  const note = ({ rule, from, to, leads }: LimitMove): void => {
    if (leads) sums.set(rule, added(sums.get(rule), from, to));
  };
  const write = async (): Promise<void> => {
    const written = [...sums];
    sums.clear();
    for (const [target, sum] of written) {
      const entry = { actor: "sluice", action: "limit.moved", target, details: { ...sum } };
      await repository.record(entry).catch((error: unknown) => {
        log.warn("moves of a limit could not be written to the audit", { rule: target, error: String(error) });
      });
    }
  };
  limiter.on("limit", note);
  const timer = setInterval(() => void write(), EVERY_MS);
  timer.unref();
  return {
    close: async () => {
      clearInterval(timer);
      limiter.off("limit", note);
      await write();
    },
  };
}

function added(sum: Sum | undefined, from: number, to: number): Sum {
  const { moves, lowest, highest, from: first } = sum ?? { moves: 0, lowest: from, highest: from, from };
  return { moves: moves + 1, lowest: Math.min(lowest, to), highest: Math.max(highest, to), from: first, to };
}
