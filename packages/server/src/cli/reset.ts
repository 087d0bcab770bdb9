/** `sluice reset RULE user=42`: forgets what a rule has counted for a key. Needs an admin token. */
import { Command, Option } from "commander";
import { printable } from "../printable.js";
import { clientSettings } from "../settings/settings.js";
import { readAdminToken } from "./admin-token.js";
import { parseAttributes } from "./attribute-arguments.js";
import { printJson, printLine } from "./print.js";
import { type ClientOptions, post } from "./service-client.js";

export function resetCommand(): Command {
  const { server, adminToken } = clientSettings();
  return new Command("reset")
    .description("forget what a rule has counted for a key")
    .argument("<rule>", "the rule's id")
    .argument("[attributes...]", "what the rule counts by, such as user=42")
    .addOption(new Option("--server <url>", "the service to ask").env("SLUICE_SERVER").default(server))
    .option("--token <token>", "an admin token (SLUICE_ADMIN_TOKEN; default: the file under .sluice/)")
    .option("--json", "print JSON", false)
    .action(async (rule: string, given: string[], options: ClientOptions & { json: boolean }) => {
      const token = options.token ?? adminToken ?? readAdminToken();
      const answer = await post(
        "/admin/v1/keys/reset",
        { rule, attributes: parseAttributes(given) },
        { ...options, token },
      );
      if (options.json) printJson(answer);
      else printLine(`${printable(rule)}: forgotten`);
    });
}
