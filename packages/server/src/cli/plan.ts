/** `sluice plan --rules rules.yaml --keys 1000000 --rate 5000`: capacity planning for Redis, with the formula of each figure. */
import { Command, Option } from "commander";
import type { Rule } from "sluice";
import { isCounting } from "sluice/internal";
import { type Measured, measureRules } from "../analysis/measure-redis.js";
import { type Plan, type PlanInput, planFor } from "../analysis/plan.js";
import { parseCount, parseSize } from "./arguments.js";
import { withStore } from "./embedded-redis.js";
import { colours, figure, printJson, printLine, printTable } from "./print.js";
import { showProgress } from "./progress.js";
import { rulesIn } from "./rules-files.js";

interface PlanOptions {
  readonly rules: string;
  readonly keys: number;
  readonly rate: number;
  readonly instances: number;
  readonly valueLength: number;
  readonly nodeMemory: number;
  readonly measure: boolean;
  readonly store: string;
  readonly json: boolean;
}

/** Redis CPU time of a script with one rule, and for each further rule: Redis 7.0 on one core of a shared machine, network included. */
const ASSUMED_US = { first: 22, more: 7 };
const MEASURED_KEYS = 2_000;
const MEASURED_REQUESTS = 20_000;

export function planCommand(): Command {
  return new Command("plan")
    .description("memory, processor time, connections and nodes that rules need, with the formula beside each figure")
    .requiredOption("--rules <file>", "YAML or JSON")
    .requiredOption(
      "--keys <n>",
      "counters of each rule that are alive at once, such as active users",
      parseCount("keys"),
    )
    .requiredOption("--rate <n>", "requests a second over all instances", parseCount("rate"))
    .option("--instances <n>", "instances of the service or of your program", parseCount("instances"), 3)
    .option("--value-length <n>", "characters of a key attribute's value", parseCount("value-length"), 12)
    .addOption(
      new Option("--node-memory <size>", "memory of one Redis node")
        .argParser(parseSize("node-memory"))
        .default(4 * 2 ** 30, "4gb"),
    )
    .option(
      "--measure",
      `measure on --store: ${figure(MEASURED_KEYS)} keys of clients of its own, deleted afterwards`,
      false,
    )
    .addOption(
      new Option("--store <url>", "the Redis to measure on; embedded: starts one")
        .env("SLUICE_STORE")
        .default("redis://127.0.0.1:6379"),
    )
    .option("--json", "print JSON", false)
    .action(async (options: PlanOptions) => {
      const rules = rulesIn(options.rules).filter(({ mode }) => mode !== "off");
      const measured = options.measure ? await measureWithProgress(rules, options) : undefined;
      const plan = planFor(inputOf(rules, options, measured));
      if (options.json) printJson({ ...plan, ...(measured && { measured: jsonOf(measured) }) });
      else show(plan, measured);
    });
}

function inputOf(rules: readonly Rule[], options: PlanOptions, measured: Measured | undefined): PlanInput {
  const { keys, rate, instances, valueLength, nodeMemory: nodeBytes } = options;
  const assumed = ASSUMED_US.first + ASSUMED_US.more * Math.max(0, rules.filter(isCounting).length - 1);
  const microseconds = measured?.microseconds ?? assumed;
  return { rules, keys, rate, instances, valueLength, nodeBytes, microseconds, isMeasured: measured !== undefined };
}

async function measureWithProgress(rules: readonly Rule[], options: PlanOptions): Promise<Measured> {
  const end = showProgress((seconds) => `measuring on Redis, ${seconds} s`);
  return await withStore(options.store, (store) => measure(rules, { ...options, store })).finally(end);
}

function measure(rules: readonly Rule[], options: PlanOptions): Promise<Measured> {
  const units = new Map(
    planFor(inputOf(rules, options, undefined)).rules.map(({ rule, unitsPerKey }) => [rule, unitsPerKey]),
  );
  return measureRules({
    url: options.store,
    rules: rules.filter(isCounting),
    keys: Math.min(MEASURED_KEYS, options.keys),
    unitsOf: ({ id }) => units.get(id) ?? 1,
    requests: MEASURED_REQUESTS,
    valueLength: options.valueLength,
  });
}

function jsonOf({ bytesPerKey, ...figures }: Measured): object {
  return { ...figures, bytesPerKey: Object.fromEntries(bytesPerKey) };
}

function show({ rules, memory, cpu, connections, nodes, warnings }: Plan, measured: Measured | undefined): void {
  printTable(
    [
      "rule",
      "keys",
      "units a key",
      "bytes a key",
      "bytes a full key",
      "in all",
      ...(measured === undefined ? [] : ["measured bytes a key"]),
    ],
    rules.map(({ rule, keys, unitsPerKey, bytesPerKey, bytesPerFullKey, bytes }) => [
      rule,
      ...[keys, unitsPerKey, bytesPerKey, bytesPerFullKey].map((value) => figure(Math.round(value))),
      spellBytes(bytes),
      ...(measured === undefined ? [] : [figure(Math.round(measured.bytesPerKey.get(rule) ?? 0))]),
    ]),
  );
  printLine("");
  printTable(
    ["what", "figure", "formula"],
    [
      ["memory", `${spellBytes(memory.bytes)}; ${spellBytes(memory.fullBytes)} with every key full`, memory.formula],
      ["processor", `${figure(cpu.cores)} cores of Redis`, cpu.formula],
      ["connections", figure(connections.count), connections.formula],
      ["nodes", figure(nodes.count), nodes.formula],
    ],
  );
  if (measured !== undefined) {
    printLine("");
    printLine(
      `measured on Redis ${measured.redisVersion}: ${figure(measured.microseconds)} us a request, ${figure(measured.scriptMicroseconds)} of them in scripts; ${figure(measured.commands)} commands a request`,
    );
  }
  for (const warning of warnings) printLine(colours.yellow(`\n${warning}`));
}

function spellBytes(bytes: number): string {
  if (bytes >= 2 ** 30) return `${figure(bytes / 2 ** 30)} GiB`;
  return bytes >= 2 ** 20 ? `${figure(bytes / 2 ** 20)} MiB` : `${figure(bytes / 2 ** 10)} KiB`;
}
