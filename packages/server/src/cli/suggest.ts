/** `sluice suggest --key ip access.log`: suggests limits from real traffic, and how many keys each would affect. */
import { type Command, Option } from "commander";
import { SluiceError } from "sluice";
import { parseDuration } from "sluice/internal";
import { stringify } from "yaml";
import { Suggester, type Suggestion, type Suggestions } from "../analysis/suggest.js";
import { clientSettings } from "../settings/settings.js";
import { CommandFailure, exitStatus } from "./command-failure.js";
import {
  type LogOptions,
  logCommand,
  openLogs,
  printLogCounts,
  printMalformed,
  readAttributes,
  whileReading,
} from "./log-arguments.js";
import { figure, printJson, printLine, printTable } from "./print.js";
import { type HistoryOptions, suggestFromService } from "./suggest-from-service.js";

interface SuggestOptions extends LogOptions {
  readonly key: readonly string[];
  readonly window: readonly { text: string; ms: number }[];
  readonly headroom: number;
}

const DEFAULT_WINDOWS = "1s,1m,1h";

export function suggestCommand(): Command {
  const { server } = clientSettings();
  return logCommand("suggest", { isOptional: true })
    .description("limits from access logs: what each key did at most, and how many keys a limit would touch")
    .option("--key <names>", "the attributes that a limit is kept for, such as ip or user,path", parseNames, ["ip"])
    .option("--window <durations>", "the windows to look at", parseWindows, parseWindows(DEFAULT_WINDOWS))
    .option("--headroom <factor>", "how much above what was seen", parseHeadroom, 1.2)
    .option("--rule <id>", "instead of logs: a rule in force, from the history of a running service")
    .addOption(new Option("--history <span>", "with --rule: how far back").choices(["hour", "day"]).default("day"))
    .addOption(new Option("--server <url>", "with --rule: the service to ask").env("SLUICE_SERVER").default(server))
    .option("--token <token>", "with --rule: an admin token (SLUICE_ADMIN_TOKEN; default: the file under .sluice/)")
    .action(async (files: string[], options: SuggestOptions & HistoryOptions) => {
      if ((options.rule === undefined) === (files.length === 0)) {
        throw new CommandFailure("suggest: expected access logs, or --rule ID", exitStatus.misuse);
      }
      if (options.rule !== undefined) {
        await suggestFromService(options.rule, options);
        return;
      }
      const opened = openLogs(files, options);
      const suggester = new Suggester({ key: options.key, windows: options.window, headroom: options.headroom });
      let malformed = 0;
      const found = await whileReading(opened.logs.counts, async () => {
        for await (const batch of readAttributes(opened, () => malformed++)) {
          for (const { request, attributes } of batch) suggester.add(attributes, request.atMs);
        }
        return suggester.read();
      });
      if (options.json) printJson({ ...found, malformed });
      else {
        printLogCounts(opened.logs.counts);
        printMalformed(malformed);
        show(found, options);
      }
    });
}

function show({ windows, withoutKey, rules, requests }: Suggestions, { key, headroom }: SuggestOptions): void {
  if (withoutKey > 0) printLine(`${figure(withoutKey)} of ${figure(requests)} requests lack ${key.join(" or ")}`);
  if (rules.length === 0) {
    printLine("nothing to suggest from");
    return;
  }
  printLine("");
  printTable(
    ["window", "keys", "p50", "p99", "p99.9", "most", "busiest key"],
    windows.map(({ window, keys, p50, p99, p999, max, busiest }) => [
      window,
      ...[keys, p50, p99, p999, max].map(figure),
      busiest[0]?.key ?? "-",
    ]),
  );
  printLine("");
  printTable(["window", "limit", "from", "keys it would touch"], windows.flatMap(limitRows));
  printLine("");
  printLine(
    `Each limit is ${headroom} times what was seen. To try the p99.9 limits in shadow mode, which refuses nobody:`,
  );
  printLine("");
  printLine(stringify({ rules }).trimEnd());
}

function limitRows({ window, limits, keys }: Suggestion): string[][] {
  return limits.map(({ limit, from, keysTouched }) => [
    window,
    figure(limit),
    from,
    `${figure(keysTouched)} of ${figure(keys)}`,
  ]);
}

function parseNames(text: string): string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.some((name) => name === "")) {
    throw new SluiceError("invalid-setting", `key: expected names such as user,path, got ${JSON.stringify(text)}`);
  }
  // A rule's key lists each attribute once.
  return [...new Set(names)];
}

function parseWindows(text: string): { text: string; ms: number }[] {
  const windows = text.split(",").map((one) => ({ text: one.trim(), ms: parseDuration(one.trim()) ?? 0 }));
  const wrong = windows.find(({ ms }) => !(ms > 0));
  if (wrong !== undefined) {
    throw new SluiceError(
      "invalid-setting",
      `window: expected durations such as 1s,1m,1h, got ${JSON.stringify(wrong.text)}`,
    );
  }
  // `60s` and `1m` are the same window.
  return [...new Map(windows.map((one) => [one.ms, one])).values()].sort((a, b) => a.ms - b.ms);
}

function parseHeadroom(text: string): number {
  const factor = Number(text);
  if (!(factor > 0 && factor <= 1_000)) {
    throw new SluiceError("invalid-setting", `headroom: expected a factor such as 1.2, got ${JSON.stringify(text)}`);
  }
  return factor;
}
