/** Runs the service of `sluice serve`, as the first process or as a worker. Settings come from Commander's reading or the quick one. */
import cluster from "node:cluster";
import { closePorts, openPortsFirst, type WhenTaken } from "../service/open-ports.js";
import { configFileOf, type SettingSources, settingsFrom, socketsOfSupervisor } from "../settings/given-settings.js";
import type { Settings } from "../settings/setting-specs.js";
import { CommandFailure } from "./command-failure.js";

/** Rejects with what ends the command with a status other than 0. */
export async function runService(sources: SettingSources): Promise<void> {
  const read = (): Promise<Settings> => readSettings(sources);
  const status = cluster.isWorker ? await work(read) : await openAndServe(await read());
  if (status !== 0) throw new CommandFailure("", 1);
}

/** What reads the settings file is code that a start without one does not need. */
async function readSettings(sources: SettingSources): Promise<Settings> {
  if (configFileOf(sources) === undefined) return settingsFrom(sources);
  const { resolveSettings } = await import("../settings/settings.js");
  return resolveSettings(sources);
}

/** The ports open before the service is even read: clients wait at an open port, and fail at a closed one. */
async function openAndServe(settings: Settings): Promise<number> {
  // It asks for new workers; before there are any, it must not end the process.
  if (settings.workers > 1) process.on("SIGHUP", () => undefined);
  const inherited = socketsOfSupervisor();
  let wait: WhenTaken | undefined;
  const whenTaken: WhenTaken = async (address) => {
    wait ??= (await import("../service/predecessor.js")).waitForPredecessor(settings);
    return await wait(address);
  };
  const ports = await openPortsFirst(settings, inherited, whenTaken);
  try {
    // Loaded only now: the other commands need none of it, and start in a tenth of the time.
    const { serve } = await import("../service/serve.js");
    return await serve(settings, { ports, whenTaken });
  } finally {
    if (ports !== undefined) await closePorts(ports);
  }
}

/** Settings may have changed since the first process read them: a mistake in them is the worker's to report. */
async function work(read: () => Promise<Settings>): Promise<number> {
  const { runWorker } = await import("../service/worker.js");
  return await runWorker(read);
}
