/** `sluice keys`: the keys with the most traffic, or the most refusals. Needs an admin token. */
import { type Command, Option } from "commander";
import type { TopKeysView } from "../monitoring/views/keys.js";
import { figure, printJson, printLine, printTable, spellKey } from "./print.js";
import { type AdminOptions, adminCommand, askAdmin, wholeNumber } from "./rules-client.js";

type Options = AdminOptions & { by: string; window: string; limit: string; rule?: string; search?: string };

export function keysCommand(): Command {
  return adminCommand("keys")
    .description("the busiest keys; `explain` shows the state of one, `reset` forgets it")
    .addOption(new Option("--by <what>", "the order").choices(["traffic", "refusals"]).default("traffic"))
    .addOption(new Option("--window <window>", "the last hour or day").choices(["hour", "day"]).default("hour"))
    .option("--rule <id>", "of this rule alone")
    .option("--search <text>", "keys that contain this")
    .option("--limit <n>", "how many", wholeNumber, "20")
    .action(async (options: Options) => {
      const { by, window, rule, search, limit } = options;
      const view = await askAdmin<TopKeysView>("/keys/top", options, { query: { by, window, rule, search, limit } });
      if (options.json) printJson(view);
      else show(view);
    });
}

function show({ keys, maxError }: TopKeysView): void {
  if (keys.length === 0) {
    printLine("no key was seen; they are written every few seconds");
    return;
  }
  const rows = keys.map(({ rule, attributes, count, refused, peakUtilisation }) => [
    rule,
    spellKey(attributes),
    figure(count),
    figure(refused),
    `${Math.round(100 * peakUtilisation)} %`,
  ]);
  printTable(["rule", "key", "checks", "refused", "peak use"], rows);
  if (maxError > 0) printLine(`counts are at most ${figure(maxError)} too high`);
}
