/**
 * `sluice block RULE user=42 --for 1h` blocks a key; `sluice blocks` lists blocked keys; `sluice reset` lifts a block. The first two need
 * an admin token.
 */
import type { Command } from "commander";
import type { BlockedKeysView } from "../monitoring/views/keys.js";
import { printable } from "../printable.js";
import { parseAttributes } from "./attribute-arguments.js";
import { printJson, printLine, printTable, spellKey, spellMs } from "./print.js";
import { adminCommand, type ClientOptions, get, post, withAdminToken } from "./service-client.js";

type Options = ClientOptions & { json: boolean };

export function blockCommand(): Command {
  return adminCommand("block")
    .description("block a key of a rule with blockFor; `sluice reset` lifts the block")
    .argument("<rule>", "the rule's id")
    .argument("[attributes...]", "what the rule counts by, such as user=42")
    .requiredOption("--for <duration>", "how long from now, such as 1h")
    .action(async (rule: string, given: string[], options: Options & { for: string }) => {
      const body = { rule, attributes: parseAttributes(given), for: options.for };
      const answer = await post("/admin/v1/keys/block", body, withAdminToken(options));
      if (options.json) printJson(answer);
      else printLine(`${printable(rule)}: blocked for ${printable(options.for)}`);
    });
}

export function blocksCommand(): Command {
  return adminCommand("blocks")
    .description("the keys that are blocked now")
    .option("--rule <id>", "of this rule alone")
    .action(async (options: Options & { rule?: string }) => {
      const query = options.rule === undefined ? "" : `?rule=${encodeURIComponent(options.rule)}`;
      const view = (await get(`/admin/v1/keys/blocked${query}`, withAdminToken(options))) as BlockedKeysView;
      if (options.json) printJson(view);
      else printBlocked(view);
    });
}

function printBlocked({ keys, complete }: BlockedKeysView): void {
  if (keys.length === 0) printLine("no key is blocked");
  else {
    const rows = keys.map(({ rule, attributes, leftMs }) => [
      rule,
      attributes === undefined ? "(too long to show)" : spellKey(attributes),
      spellMs(leftMs),
    ]);
    printTable(["rule", "key", "blocked for"], rows);
  }
  if (!complete) printLine("There may be more: the store holds too many keys to look at all.");
}
