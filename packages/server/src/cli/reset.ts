/** `sluice reset RULE user=42`: resets a rule's counter for a key, and lifts its block. Needs an admin token. */
import type { Command } from "commander";
import { printable } from "../printable.js";
import { parseAttributes } from "./attribute-arguments.js";
import { printJson, printLine } from "./print.js";
import { adminCommand, type ClientOptions, post, withAdminToken } from "./service-client.js";

export function resetCommand(): Command {
  return adminCommand("reset")
    .description("forget what a rule has counted for a key, and lift its block")
    .argument("<rule>", "the rule's id")
    .argument("[attributes...]", "what the rule counts by, such as user=42")
    .action(async (rule: string, given: string[], options: ClientOptions & { json: boolean }) => {
      const body = { rule, attributes: parseAttributes(given) };
      const answer = await post("/admin/v1/keys/reset", body, withAdminToken(options));
      if (options.json) printJson(answer);
      else printLine(`${printable(rule)}: forgotten`);
    });
}
