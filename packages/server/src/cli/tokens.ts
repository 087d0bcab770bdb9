/** `sluice tokens list|create|delete`: the named tokens of the admin API. Needs a token with the role admin. */
import { Argument, Command, Option } from "commander";
import { printable } from "../printable.js";
import { printJson, printLine, printTable } from "./print.js";
import { type AdminOptions, adminCommand, askAdmin } from "./rules-client.js";

interface TokensReply {
  readonly tokens: readonly {
    readonly name: string;
    readonly role: string;
    readonly createdAt: string;
    readonly createdBy?: string;
    readonly expiresAt?: string;
    readonly lastUsedAt?: string;
  }[];
}

export function tokensCommand(): Command {
  return new Command("tokens")
    .description("named tokens of the admin API; needs the role admin")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(createCommand())
    .addCommand(deleteCommand());
}

function listCommand(): Command {
  return adminCommand("list")
    .description("names and roles; secrets are never shown again")
    .action(async (options: AdminOptions) => {
      const reply = await askAdmin<TokensReply>("/tokens", options);
      if (options.json) printJson(reply);
      else if (reply.tokens.length === 0) printLine("no named tokens");
      else {
        const rows = reply.tokens.map(({ name, role, createdAt, createdBy = "", ...more }) => [
          name,
          role,
          createdAt,
          createdBy,
          more.expiresAt ?? "never",
          more.lastUsedAt ?? "never",
        ]);
        printTable(["name", "role", "made", "by", "expires", "last used"], rows);
      }
    });
}

function createCommand(): Command {
  return adminCommand("create")
    .description("make a token; it is printed once, alone on standard output")
    .addArgument(new Argument("<name>", "whose it is, such as deploy-bot"))
    .addOption(new Option("--role <role>", "what it may do").choices(["viewer", "editor", "admin"]).default("viewer"))
    .option("--expires-in <duration>", "after which it stops working, such as 90d")
    .action(async (name: string, options: AdminOptions & { role: string; expiresIn?: string }) => {
      const body = JSON.stringify({ name, role: options.role, expiresIn: options.expiresIn });
      const made = await askAdmin<{ token: string }>("/tokens", options, { method: "POST", body });
      if (options.json) printJson(made);
      // Only the token on standard output, so that `$(sluice tokens create …)` works.
      else printLine(printable(made.token));
    });
}

function deleteCommand(): Command {
  return adminCommand("delete")
    .description("end a token; what it signed in ends with it")
    .argument("<name>", "the token's name")
    .action(async (name: string, options: AdminOptions) => {
      await askAdmin<undefined>(`/tokens/${encodeURIComponent(name)}`, options, { method: "DELETE" });
      if (options.json) printJson({ deleted: true });
      else printLine(`${printable(name)}: deleted`);
    });
}
