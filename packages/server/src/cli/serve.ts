/** `sluice serve` as a command with help: the options are the settings' table, one flag each. */
import type { Command } from "commander";
import { runService } from "./run-service.js";
import { flagsByName, settingsCommand } from "./settings-command.js";

export function serveCommand(): Command {
  return settingsCommand("serve")
    .description(
      "serve HTTP, gRPC, forward-auth and the proxy. Each flag is also a variable (--grpc-port: SLUICE_GRPC_PORT) and a key of sluice.yaml; flags win, then variables",
    )
    .action(async (_options: unknown, given: Command) => {
      const { config, ...flags } = given.opts<Record<string, string>>();
      await runService({ flags: flagsByName(flags), configFile: config });
    });
}
