/** `sluice top`: what each rule allows and refuses per second, from the service's metrics. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { CommandFailure, exitStatus } from "./command-failure.js";
import { colours, printJson, printLine, printTable } from "./print.js";
import { type ClientOptions, clientCommand, getText } from "./service-client.js";

interface TopOptions extends ClientOptions {
  readonly interval: number;
  readonly once: boolean;
  readonly json: boolean;
}

interface Counts {
  allowed: number;
  refused: number;
}

interface Row {
  readonly rule: string;
  readonly mode: string;
  readonly allowedPerSecond: number;
  readonly refusedPerSecond: number;
}

export function topCommand(): Command {
  return clientCommand("top")
    .description("what each rule allows and refuses per second")
    .option("--interval <seconds>", "time between two looks", parseInterval, 1)
    .option("--once", "look once, for scripts", false)
    .action(async (options: TopOptions) => {
      let before = readCounts(await getText("/metrics", options));
      do {
        await sleep(options.interval * 1000);
        const now = readCounts(await getText("/metrics", options));
        show(ratesOf(before, now, options.interval), options);
        before = now;
      } while (!options.once);
    });
}

function parseInterval(text: string): number {
  const seconds = Number(text);
  if (seconds >= 0.1 && seconds <= 60) return seconds;
  throw new CommandFailure(`--interval: expected 0.1 to 60 seconds, got ${text}`, exitStatus.misuse);
}

/** Of `sluice_checks_total`, by rule and mode. */
export function readCounts(metrics: string): Map<string, Counts> {
  const counts = new Map<string, Counts>();
  for (const [, labels, value] of metrics.matchAll(/^sluice_checks_total\{([^}]*)\} (\S+)$/gm)) {
    const read = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels!)?.[1] ?? "";
    const key = JSON.stringify([read("rule"), read("mode")]);
    const sum = counts.get(key) ?? { allowed: 0, refused: 0 };
    sum[read("outcome") === "allowed" ? "allowed" : "refused"] += Number(value);
    counts.set(key, sum);
  }
  return counts;
}

function ratesOf(before: Map<string, Counts>, now: Map<string, Counts>, seconds: number): Row[] {
  const rows = [...now].map(([key, { allowed, refused }]): Row => {
    const [rule, mode] = JSON.parse(key) as [string, string];
    const earlier = before.get(key) ?? { allowed: 0, refused: 0 };
    // A service that was started anew counts from zero again.
    const rate = (a: number, b: number): number => Math.max(0, Math.round((10 * (a - b)) / seconds) / 10);
    return {
      rule,
      mode,
      allowedPerSecond: rate(allowed, earlier.allowed),
      refusedPerSecond: rate(refused, earlier.refused),
    };
  });
  return rows.sort((a, b) => b.refusedPerSecond - a.refusedPerSecond || b.allowedPerSecond - a.allowedPerSecond);
}

function show(rows: readonly Row[], { json, once }: TopOptions): void {
  if (json) {
    printJson({ rules: rows });
    return;
  }
  // On a terminal each look takes the place of the one before.
  if (process.stdout.isTTY && !once) process.stdout.write("\u001b[2J\u001b[H");
  if (rows.length === 0) printLine("no rule has been checked yet");
  else {
    printTable(
      ["rule", "mode", "allowed/s", "refused/s"],
      rows.map(({ rule, mode, allowedPerSecond, refusedPerSecond }) => [
        rule,
        mode,
        String(allowedPerSecond),
        refusedPerSecond > 0 ? colours.red(String(refusedPerSecond)) : "0",
      ]),
    );
  }
}
