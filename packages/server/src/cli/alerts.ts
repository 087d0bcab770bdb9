/** `sluice alerts`: firing alerts, and those of the last days. Needs an admin token. */
import type { Command } from "commander";
import type { AlertsView } from "../monitoring/views/alerts.js";
import { alertChangeCommands } from "./alert-changes.js";
import { CommandFailure } from "./command-failure.js";
import { colours, printJson, printLine, printTable } from "./print.js";
import { type AdminOptions, adminCommand, askAdmin } from "./rules-client.js";

export function alertsCommand(): Command {
  const command = adminCommand("alerts")
    // Options after a subcommand belong to that subcommand.
    .enablePositionalOptions()
    .description("alerts that fire; --all for those that are over, too")
    .option("--all", "also those of the last eight days that are over", false)
    .option("--exit-code", "exit status 1 if one fires", false)
    .action(async (options: AdminOptions & { all: boolean; exitCode: boolean }) => {
      const view = await askAdmin<AlertsView>("/alerts", options);
      const firing = view.alerts.filter(({ state }) => state === "firing");
      if (options.json) printJson(options.all ? view : { ...view, alerts: firing });
      else show(view, options.all ? view.alerts : firing);
      if (options.exitCode && firing.length > 0) throw new CommandFailure("");
    });
  for (const change of alertChangeCommands()) command.addCommand(change);
  return command;
}

function show({ scope, webhooks, receivers }: AlertsView, alerts: AlertsView["alerts"]): void {
  if (alerts.length === 0) printLine("no alert fires");
  else {
    const rows = alerts.map(({ id, kind, state, severity, startedAtMs, summary, acknowledged, silencedUntilMs }) => [
      id,
      state === "resolved"
        ? state
        : `${state}${acknowledged ? `, ${acknowledged.by} looks after it` : ""}${silencedUntilMs ? ", silenced" : ""}`,
      severity,
      kind,
      new Date(startedAtMs).toISOString(),
      summary,
    ]);
    printTable(["id", "state", "severity", "kind", "since", "what"], rows);
  }
  if (scope === "instance") printLine(colours.yellow("only what this instance has seen: the store cannot be read"));
  for (const { url, lastError } of webhooks) {
    if (lastError !== undefined) printLine(colours.red(`webhook ${url}: ${lastError}`));
  }
  for (const { id, lastError } of receivers) {
    if (lastError !== undefined) printLine(colours.red(`receiver ${id}: ${lastError}`));
  }
}
