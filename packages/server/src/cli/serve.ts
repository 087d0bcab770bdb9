/** `sluice serve`: the options are the settings' table, one flag each. */
import cluster from "node:cluster";
import type { Command } from "commander";
import { closePorts, openPorts } from "../service/open-ports.js";
import { resolveSettings, type Settings, socketsOfSupervisor } from "../settings/settings.js";
import { CommandFailure } from "./command-failure.js";
import { flagsByName, settingsCommand } from "./settings-command.js";

export function serveCommand(): Command {
  return settingsCommand("serve")
    .description(
      "serve HTTP, gRPC, forward-auth and the proxy. Each flag is also a variable (--grpc-port: SLUICE_GRPC_PORT) and a key of sluice.yaml; flags win, then variables",
    )
    .action(async (_options: unknown, given: Command) => {
      const { config, ...flags } = given.opts<Record<string, string>>();
      const read = (): Settings => resolveSettings({ flags: flagsByName(flags), configFile: config });
      const status = cluster.isWorker ? await work(read) : await openAndServe(read());
      if (status !== 0) throw new CommandFailure("", 1);
    });
}

/** The ports open before the service is even read: clients wait at an open port, and fail at a closed one. */
async function openAndServe(settings: Settings): Promise<number> {
  // It asks for new workers; before there are any, it must not end the process.
  if (settings.workers > 1) process.on("SIGHUP", () => undefined);
  const ports = await openPorts(settings, socketsOfSupervisor());
  try {
    // Loaded only now: the other commands need none of it, and start in a tenth of the time.
    const { serve } = await import("../service/serve.js");
    return await serve(settings, ports);
  } finally {
    await closePorts(ports);
  }
}

/** Settings may have changed since the first process read them: a mistake in them is the worker's to report. */
async function work(read: () => Settings): Promise<number> {
  const { runWorker } = await import("../service/worker.js");
  return await runWorker(read);
}
