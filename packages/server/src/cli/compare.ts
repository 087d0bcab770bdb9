/** `sluice compare --store redis://127.0.0.1:6379`: all algorithms on the same load, and their cost on a real Redis. */
import { writeFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { SluiceError } from "sluice";
import { parseDuration } from "sluice/internal";
import { compareAlgorithms } from "../analysis/compare.js";
import { columnsOf, compareMarkdown, compareSvg } from "../analysis/compare-text.js";
import type { Arrival } from "../analysis/replay.js";
import { edgeBursts } from "../analysis/synthetic-load.js";
import { parseCount } from "./arguments.js";
import { CommandFailure } from "./command-failure.js";
import { withStore } from "./embedded-redis.js";
import {
  type LogOptions,
  logCommand,
  type OpenedLogs,
  openLogs,
  printLogCounts,
  printMalformed,
  readAttributes,
} from "./log-arguments.js";
import { figure, printJson, printLine, printTable } from "./print.js";
import { showProgress } from "./progress.js";

interface CompareOptions extends LogOptions {
  readonly limit: number;
  readonly window: string;
  readonly key: string;
  readonly store?: string;
  readonly requests: number;
  readonly markdown: boolean;
  readonly svg?: string;
}

const WINDOWS = 20;

export function compareCommand(): Command {
  return logCommand("compare", { isOptional: true })
    .description(
      "every algorithm on one load: what it admits at worst, refuses, and takes on Redis; the paper's tables, measured",
    )
    .option("--limit <n>", "the limit to compare at", parseCount("limit"), 100)
    .option("--window <duration>", "its window", "1m")
    .option("--key <name>", "with logs: the attribute that counters are kept for", "ip")
    .addOption(
      new Option(
        "--store <url>",
        "a Redis to measure bytes and time on; its other data is left alone; embedded: starts one",
      ).env("SLUICE_STORE"),
    )
    .option("--requests <n>", "how many requests are timed for each algorithm", parseCount("requests"), 10_000)
    .option("--markdown", "print a Markdown table", false)
    .option("--svg <file>", "write a chart: worst windows, and with --store bytes, beside the paper's")
    .action(async (files: string[], options: CompareOptions) => {
      const windowMs = parseDuration(options.window);
      if (windowMs === undefined || windowMs <= 0) {
        throw new SluiceError(
          "invalid-setting",
          `window: expected a duration such as 1m, got ${JSON.stringify(options.window)}`,
        );
      }
      const { limit, window, requests } = options;
      const hasLogs = files.length > 0;
      const opened = openLogs(files, options);
      let malformed = 0;
      let measuring: string | undefined;
      const endProgress = showProgress((seconds) =>
        measuring === undefined
          ? `${figure(opened.logs.counts.lines)} lines read, ${seconds} s`
          : `measuring ${measuring} on Redis, ${seconds} s`,
      );
      const compared = await withStore(options.store, (store) =>
        compareAlgorithms({
          limit,
          window,
          windowMs,
          key: [hasLogs ? options.key : "client"],
          load: hasLogs ? fromLogs(opened, () => malformed++) : edgeBursts({ limit, windowMs, windows: WINDOWS }),
          store,
          requests,
          onMeasure: (algorithm) => {
            measuring = algorithm;
          },
        }),
      ).finally(endProgress);
      if (options.svg !== undefined) writeChart(options.svg, compareSvg(compared));
      if (options.json) printJson(compared);
      else if (options.markdown) printLine(compareMarkdown(compared));
      else {
        if (hasLogs) {
          printLogCounts(opened.logs.counts);
          printMalformed(malformed);
        }
        const columns = columnsOf(compared);
        printTable(
          columns.map(([head]) => head),
          compared.rows.map((row) => columns.map(([, cell]) => cell(row))),
        );
        if (options.store === undefined)
          printLine("\nWith --store redis://… or --store embedded it also measures bytes, time and commands.");
      }
    });
}

function writeChart(file: string, svg: string): void {
  try {
    writeFileSync(file, svg);
  } catch (error) {
    throw new CommandFailure(`${file}: could not be written: ${(error as Error).message}`);
  }
}

async function* fromLogs(opened: OpenedLogs, onMalformed: () => void): AsyncGenerator<Arrival> {
  for await (const batch of readAttributes(opened, onMalformed)) {
    for (const { request, attributes } of batch)
      yield { atMs: request.atMs, durationMs: request.durationMs, attributes };
  }
}
