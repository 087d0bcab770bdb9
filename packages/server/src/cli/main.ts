/**
 * The `sluice` command. Exit status: 0 done, 1 failed, 2 misuse, 3 refused (`check`).
 */
import { Command, CommanderError } from "commander";
import { SluiceError } from "sluice";
import { packageVersion } from "../own-package.js";
import { printableLines } from "../printable.js";
import { chargeCommand, checkCommand, peekCommand } from "./check.js";
import { CommandFailure, exitStatus } from "./command-failure.js";
import { compareCommand } from "./compare.js";
import { explainCommand } from "./explain.js";
import { planCommand } from "./plan.js";
import { releaseCommand } from "./release.js";
import { resetCommand } from "./reset.js";
import { rulesCommand } from "./rules.js";
import { serveCommand } from "./serve.js";
import { simulateCommand } from "./simulate.js";
import { suggestCommand } from "./suggest.js";
import { topCommand } from "./top.js";

export async function main(argv: readonly string[]): Promise<void> {
  // A service that loses the reader of its output has failed; a command whose reader has seen enough (`| head`) is done.
  if (argv[2] !== "serve") process.stdout.on("error", endIfReaderLeft);
  try {
    await program().parseAsync([...argv]);
  } catch (error) {
    process.exitCode = report(error);
  }
}

function endIfReaderLeft(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit(exitStatus.done);
}

function program(): Command {
  const root = new Command("sluice")
    .description("Sluice: a distributed rate limiter")
    .version(packageVersion())
    .showHelpAfterError("(sluice help lists the commands)");
  const commands = [
    serveCommand,
    checkCommand,
    chargeCommand,
    peekCommand,
    explainCommand,
    releaseCommand,
    resetCommand,
    rulesCommand,
    topCommand,
    simulateCommand,
    suggestCommand,
    planCommand,
    compareCommand,
  ];
  for (const make of commands) root.addCommand(make());
  throwInsteadOfExit(root);
  return root;
}

/** Commander ends the process with status 1 for misuse; ours is 2, and 1 means that the work failed. */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const inner of command.commands) throwInsteadOfExit(inner);
}

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitStatus.done : exitStatus.misuse;
  if (error instanceof CommandFailure) {
    if (error.message !== "") process.stderr.write(`${error.message}\n`);
    return error.status;
  }
  if (error instanceof SluiceError && error.code === "invalid-setting") {
    process.stderr.write(`${printableLines(error.message)}\n`);
    return exitStatus.misuse;
  }
  process.stderr.write(`${printableLines(describe(error))}\n`);
  return exitStatus.failed;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
