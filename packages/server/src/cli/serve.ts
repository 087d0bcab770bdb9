/** `sluice serve` as a full command with help: one option per setting. */
import type { Command } from "commander";
import { runService } from "./run-service.js";
import { flagsByName, settingsCommand } from "./settings-command.js";

export function serveCommand(): Command {
  return settingsCommand("serve")
    .summary("serve HTTP, gRPC, forward-auth, the proxy and the console")
    .description(
      "serve HTTP, gRPC, forward-auth and the proxy. Each flag is also a variable (--grpc-port: SLUICE_GRPC_PORT) and a key of sluice.yaml; flags win, then variables",
    )
    .action(async (_options: unknown, given: Command) => {
      const { config, ...flags } = given.opts<Record<string, string>>();
      await runService({ flags: flagsByName(flags), configFile: config });
    });
}
