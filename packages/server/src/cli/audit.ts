/** `sluice audit`: the audit log, newest first. Needs an admin token. */
import type { Command } from "commander";
import { printJson, printLine, printTable } from "./print.js";
import { type AdminOptions, adminCommand, askAdmin, wholeNumber } from "./rules-client.js";

interface AuditReply {
  readonly entries: readonly {
    readonly id: number;
    readonly at: string;
    readonly actor: string;
    readonly action: string;
    readonly target: string;
    readonly details?: unknown;
  }[];
  readonly next?: number;
}

/** Per response of the service. */
const MOST = 500;
const filters = ["actor", "rule", "action", "from", "to"] as const;

export function auditCommand(): Command {
  return adminCommand("audit")
    .description("what administrators did, newest first")
    .option("--limit <n>", "how many", wholeNumber, "50")
    .option("--actor <name>", "only what this person or token did")
    .option("--rule <id>", "only what is about this rule")
    .option("--action <name>", "only this action, such as rules.changed")
    .option("--from <time>", "not before, such as 2026-11-17T09:00:00Z")
    .option("--to <time>", "before")
    .action(async (options: AdminOptions & { limit: string } & Partial<Record<(typeof filters)[number], string>>) => {
      const limit = String(Math.min(MOST, Number(options.limit)));
      const filter = Object.fromEntries(filters.map((name) => [name, options[name]]));
      const reply = await askAdmin<AuditReply>("/audit", options, { query: { limit, ...filter } });
      if (options.json) printJson(reply);
      else if (reply.entries.length === 0) printLine("nothing yet");
      else {
        const rows = reply.entries.map(({ at, actor, action, target, details }) => [
          at,
          actor,
          action,
          target,
          details === undefined || details === null ? "" : JSON.stringify(details),
        ]);
        printTable(["when", "who", "did", "to", "details"], rows);
      }
    });
}
