/** `sluice serve`: the options are the settings' table, one flag each. */
import cluster from "node:cluster";
import { Command, Option } from "commander";
import { closePorts, openPorts } from "../service/open-ports.js";
import {
  resolveSettings,
  type Settings,
  settingNames,
  settingSpecs,
  socketsOfSupervisor,
  variableOf,
} from "../settings/settings.js";
import { CommandFailure } from "./command-failure.js";

export function serveCommand(): Command {
  const command = new Command("serve").description(
    "serve HTTP, gRPC, forward-auth and the proxy. Each flag is also a variable (--grpc-port: SLUICE_GRPC_PORT) and a key of sluice.yaml; flags win, then variables",
  );
  for (const name of settingNames) {
    const { placeholder, meaning, ...rest } = settingSpecs[name];
    const option = new Option(`--${name} <${placeholder}>`, meaning);
    // Commander's own default would hide whether the flag was given; this one is only shown.
    const byDefault = "default" in rest ? rest.default : undefined;
    if (byDefault !== undefined) option.description = `${meaning} (default: ${byDefault})`;
    command.addOption(option);
  }
  return command
    .option(
      "--config <FILE>",
      `settings by name, in YAML (${variableOf("config")}; default: sluice.yaml if it is there)`,
    )
    .action(async (_options: unknown, given: Command) => {
      const { config, ...flags } = given.opts<Record<string, string>>();
      const read = (): Settings => resolveSettings({ flags: byName(flags), configFile: config });
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

/** Commander names `--grpc-port` grpcPort. */
function byName(flags: Readonly<Record<string, string>>): Record<string, string | undefined> {
  const camel = (name: string): string => name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(settingNames.map((name) => [name, flags[camel(name)]]));
}
