/** Formats a load test's result: the rows of its table, and caveats. Pure. */
import type { BenchReport } from "./bench-figures.js";
import { figure, share } from "./print.js";

export interface BenchResult extends BenchReport {
  readonly server: string;
  readonly loop: "closed" | "open";
  readonly rate?: number;
  readonly connections: number;
  readonly keys: number;
  readonly ended: "requests" | "duration" | "interrupted" | "failed";
  /** This command's own event loop utilisation. */
  readonly clientUtilisation: number;
}

export function benchRows(result: BenchResult): string[][] {
  const { requests, latencyMs, allowed, refused, degraded, errors, unsent } = result;
  const part = (count: number): string => (requests === 0 ? "0" : `${figure(count)} (${share(count / requests)})`);
  return [
    ["requests", `${figure(requests)} in ${figure(result.seconds)} s`],
    ["requests a second", figure(Math.round(result.requestsPerSecond))],
    ["latency p50", spell(latencyMs.p50)],
    ["latency p95", spell(latencyMs.p95)],
    ["latency p99", spell(latencyMs.p99)],
    ["latency max", spell(latencyMs.max)],
    ["allowed", part(allowed)],
    ["refused", part(refused)],
    ...Object.entries(result.refusedBy).map(([rule, count]) => [`refused by ${rule}`, part(count)]),
    ["degraded", part(degraded)],
    ["errors", part(errors)],
    ...Object.entries(result.errorsBy).map(([kind, count]) => [`error ${kind}`, part(count)]),
    ...(unsent > 0 ? [["due, never sent", figure(unsent)]] : []),
  ];
}

/** Hundredths of a millisecond matter here, unlike for waits of refused clients, which are rounded up elsewhere. */
function spell(ms: number): string {
  if (ms >= 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${ms.toFixed(ms < 10 ? 2 : ms < 100 ? 1 : 0)} ms`;
}

export function notesOf({ ended, loop, unsent, held, clientUtilisation }: BenchResult): string[] {
  return [
    ...(ended === "interrupted" ? ["Interrupted: these are the figures until then."] : []),
    ...(loop === "closed"
      ? ["Closed loop: a slow answer delays the next request, so stalls are understated. --rate measures them in full."]
      : []),
    ...(unsent > 0
      ? [
          "The rate was not reached: more --connections may help. Latencies include the requests that waited to be sent.",
        ]
      : []),
    ...(loop === "closed" && clientUtilisation >= 0.9
      ? [`This command was busy ${share(clientUtilisation)} of the time: the service may be faster than it can ask.`]
      : []),
    ...(held > 0
      ? [`${figure(held)} decisions hold a lease or a reservation; nothing gives these back before they expire.`]
      : []),
  ];
}
