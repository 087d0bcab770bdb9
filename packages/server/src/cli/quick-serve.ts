/**
 * `sluice serve`, on the shortest way to open ports: while a restarted service has none, an Envoy that fails closed answers 500.
 * Arguments that need more than to be taken as they are (help, mistakes) go to the command itself.
 */
import { readFlags } from "./read-flags.js";
import { reportFailure } from "./report-failure.js";
import { runService } from "./run-service.js";

export async function main(argv: readonly string[]): Promise<void> {
  const flags = readFlags(argv.slice(3));
  if (flags === undefined) {
    const command = await import("./main.js");
    await command.main(argv);
    return;
  }
  const { config, ...given } = flags;
  try {
    await runService({ flags: given, configFile: config });
  } catch (error) {
    process.exitCode = reportFailure(error);
  }
}
