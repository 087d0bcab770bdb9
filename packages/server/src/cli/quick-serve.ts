/**
 * `sluice serve` with the least code before the ports open: while a restarted service is not listening, an Envoy that fails closed answers
 * 500.
 * Arguments that need real parsing (help, mistakes) go to the full command.
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
