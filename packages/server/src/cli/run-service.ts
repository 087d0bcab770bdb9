/** Runs the service of `sluice serve`, as the first process or as a worker. Settings come from Commander or the quick parser. */
import cluster from "node:cluster";
import { closePorts, openPortsFirst, type WhenTaken } from "../service/open-ports.js";
import { configFileOf, type SettingSources, settingsFrom, socketsOfSupervisor } from "../settings/given-settings.js";
import type { Settings } from "../settings/setting-specs.js";
import { CommandFailure } from "./command-failure.js";

/** Rejects with the reason if the exit status is not 0. */
export async function runService(sources: SettingSources): Promise<void> {
  const read = (): Promise<Settings> => readSettings(sources);
  const status = cluster.isWorker ? await work(read) : await openAndServe(await read());
  if (status !== 0) throw new CommandFailure("", 1);
}

/** Loads the parser of the settings file only if there is one. */
async function readSettings(sources: SettingSources): Promise<Settings> {
  if (configFileOf(sources) === undefined) return settingsFrom(sources);
  const { resolveSettings } = await import("../settings/settings.js");
  return resolveSettings(sources);
}

/** Opens the ports before the service is even loaded: clients wait at an open port, and fail at a closed one. */
async function openAndServe(settings: Settings): Promise<number> {
  // SIGHUP requests new workers; before there are any, it must not kill the process.
  if (settings.workers > 1) process.on("SIGHUP", () => undefined);
  const inherited = socketsOfSupervisor();
  let wait: WhenTaken | undefined;
  const whenTaken: WhenTaken = async (address) => {
    wait ??= (await import("../service/predecessor.js")).waitForPredecessor(settings);
    return await wait(address);
  };
  const ports = await openPortsFirst(settings, inherited, whenTaken);
  try {
    // Loaded only now: other commands do not need it, and start in a tenth of the time.
    const { serve } = await import("../service/serve.js");
    return await serve(settings, { ports, whenTaken });
  } finally {
    if (ports !== undefined) await closePorts(ports);
  }
}

/** Settings may have changed since the first process read them: the worker reports mistakes in them. */
async function work(read: () => Promise<Settings>): Promise<number> {
  const { runWorker } = await import("../service/worker.js");
  return await runWorker(read);
}
