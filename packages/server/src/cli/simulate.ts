/** `sluice simulate --rules draft.yaml access.log`: what the rules would have done to this traffic. Exit status 1 if `--fail-if` holds. */
import { writeFileSync } from "node:fs";
import type { Command } from "commander";
import { type FailIf, parseFailIf } from "../analysis/fail-if.js";
import type { LogCounts } from "../analysis/log/read-logs.js";
import { reportHtml } from "../analysis/report-html.js";
import type { RuleFigures } from "../analysis/rule-figures.js";
import { type Simulation, Simulator } from "../analysis/simulate.js";
import { printable } from "../printable.js";
import { drawChart } from "./chart.js";
import { CommandFailure, exitStatus } from "./command-failure.js";
import {
  type LogOptions,
  logCommand,
  openLogs,
  printLogCounts,
  printMalformed,
  whileReading,
  withFolders,
} from "./log-arguments.js";
import { colours, figure, printJson, printLine, printTable, share, spellMs } from "./print.js";
import { rulesIn } from "./rules-files.js";
import { verifyRecordings } from "./verify-recordings.js";

interface SimulateFlags extends Omit<SimulateOptions, "rules"> {
  readonly rules?: string;
  readonly verify: boolean;
}

interface SimulateOptions extends LogOptions {
  readonly rules: string;
  readonly against?: string;
  readonly failIf?: FailIf;
  readonly comeBack: boolean;
  readonly html?: string;
}

export function simulateCommand(): Command {
  return logCommand("simulate")
    .description("replay access logs through rules: what would have been refused, and whom it would hit")
    .option("--rules <file>", "the rules to try; YAML or JSON")
    .option("--verify", "make the decisions of recordings (sluice serve --record) again and tell differences", false)
    .option("--against <file>", "the rules in force: tells who would newly be refused or admitted")
    .option("--come-back", "also: what if refused clients come back after Retry-After", false)
    .option("--fail-if <condition>", 'exit status 1 if it holds, such as "newlyRefused > 0.1%"', parseFailIf)
    .option("--html <file>", "write a report with charts, one file")
    .action(async (files: string[], { rules, verify, ...options }: SimulateFlags) => {
      if (verify) {
        await verifyRecordings(withFolders(files), options);
        return;
      }
      const { failIf } = options;
      if (rules === undefined) throw new CommandFailure("rules: expected --rules FILE, or --verify", exitStatus.misuse);
      if (failIf?.needsAgainst === true && options.against === undefined) {
        throw new CommandFailure(`fail-if: "${failIf.text}" needs --against, the rules in force`, exitStatus.misuse);
      }
      const comeBack = options.comeBack || failIf?.needsComeBack === true;
      const { simulation, counts } = await simulate(files, { ...options, rules, comeBack });
      if (options.html !== undefined) writeReport(options.html, simulation, counts);
      if (options.json) printJson({ ...simulation, log: { ...counts, formats: Object.fromEntries(counts.formats) } });
      else show(simulation, counts);
      if (failIf?.holds(simulation) === true) throw new CommandFailure(`fail-if: ${failIf.text}`);
    });
}

async function simulate(
  files: readonly string[],
  options: SimulateOptions,
): Promise<{ simulation: Simulation; counts: LogCounts }> {
  const { logs, attributesOf } = openLogs(files, options);
  const simulator = new Simulator({
    rules: rulesIn(options.rules),
    against: options.against === undefined ? undefined : rulesIn(options.against),
    comeBack: options.comeBack,
    mayBeRecorded: () => logs.mayBeRecorded,
    attributesOf,
  });
  const simulation = await whileReading(logs.counts, async () => {
    for await (const batch of logs.requests()) await simulator.addAll(batch);
    return await simulator.end();
  });
  return { simulation, counts: logs.counts };
}

function writeReport(file: string, simulation: Simulation, counts: LogCounts): void {
  try {
    writeFileSync(file, reportHtml(simulation, counts));
  } catch (error) {
    throw new CommandFailure(`${file}: could not be written: ${(error as Error).message}`);
  }
}

function show(simulation: Simulation, counts: LogCounts): void {
  printLogCounts(counts);
  const { total, refused, unmatched, malformed, from, to, rules, against, comeBack, evicted } = simulation;
  if (from === undefined) {
    printLine("no request to replay");
    return;
  }
  printLine(`from ${from} to ${to}`);
  printLine("");
  const part =
    refused === 0
      ? colours.green("none refused")
      : colours.red(`${figure(refused)} refused (${share(refused / total)})`);
  printLine(`${figure(total)} requests, ${part}; ${figure(unmatched)} met no rule`);
  printMalformed(malformed);
  if (evicted > 0)
    printLine(colours.yellow(`${figure(evicted)} counters gave way for lack of memory: figures are lower bounds`));
  printLine("");
  for (const line of drawChart(simulation.series, process.stdout.columns ?? 100, colours)) printLine(line);
  printLine("");
  printTable(["rule", "mode", "asked", "refused", "share", "keys", "keys refused", "worst window"], rules.map(ruleRow));
  if (rules.some(({ worstWindow: worst }) => worst !== undefined && worst.admitted > worst.limit)) {
    printLine("");
    printLine(
      "Worst window: the most that one key was admitted in any rolling window. It passes the limit where the algorithm",
    );
    printLine("admits a burst across its edge (fixed window, bucket); a rolling window never does.");
  }
  const unmet = rules.filter(({ total: asked }) => asked === 0).map(({ rule }) => printable(rule));
  if (unmet.length > 0) {
    printLine("");
    printLine(
      `No request met ${unmet.join(", ")}: does the log have what the rule matches and is keyed by? --attribute and --attributes map it.`,
    );
  }
  for (const { rule, topKeys } of rules) {
    if (topKeys.length === 0) continue;
    printLine("");
    printTable(
      [`refused most by ${printable(rule)}`, "refused"],
      topKeys.map(({ key, refused: count }) => [key, figure(count)]),
    );
  }
  if (against !== undefined) showComparison(against, total);
  if (comeBack !== undefined) {
    printLine("");
    printLine(
      `If refused clients come back after Retry-After: ${figure(comeBack.tries)} tries for ${figure(comeBack.requests)} requests; ${figure(comeBack.admittedLater)} are admitted later (after ${spellMs(comeBack.meanWaitMs)} on average, ${spellMs(comeBack.longestWaitMs)} at most), ${figure(comeBack.gaveUp)} give up.`,
    );
  }
}

function ruleRow({
  rule,
  mode,
  total,
  refused,
  share: part,
  keys,
  keysRefused,
  exact,
  worstWindow,
}: RuleFigures): string[] {
  return [
    rule,
    mode,
    figure(total),
    figure(refused),
    share(part),
    ...[keys, keysRefused].map((count) => `${exact ? "" : "at least "}${figure(count)}`),
    worstWindow === undefined
      ? "-"
      : `${figure(worstWindow.admitted)} of ${figure(worstWindow.limit)} (${worstWindow.key})`,
  ];
}

function showComparison(against: NonNullable<Simulation["against"]>, total: number): void {
  printLine("");
  printLine(
    `Against the rules in force (${figure(against.refused)} refused): ${figure(against.newlyRefused)} newly refused (${share(against.newlyRefused / total)}), ${figure(against.newlyAdmitted)} newly admitted (${share(against.newlyAdmitted / total)}).`,
  );
  for (const [title, keys] of [
    ["newly refused", against.newlyRefusedKeys],
    ["newly admitted", against.newlyAdmittedKeys],
  ] as const) {
    if (keys.length > 0)
      printTable(
        [title, "requests"],
        keys.map(({ key, refused }) => [key, figure(refused)]),
      );
  }
}
