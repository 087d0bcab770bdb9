/**
 * The `sluice` command. Exit status: 0 done, 1 failed, 2 misuse, 3 refused (`check`).
 */
import { Command, CommanderError } from "commander";
import { packageVersion } from "../own-package.js";
import { exitStatus } from "./command-failure.js";
import { reportFailure } from "./report-failure.js";

/** Other names of commands: one that was released stays. */
const aliases: Readonly<Record<string, string>> = { blocked: "blocks" };

/** Each is loaded when it is asked for: `serve` opens its port before the others are even read. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import("./serve.js")).serveCommand(),
  check: async () => (await import("./check.js")).checkCommand(),
  charge: async () => (await import("./check.js")).chargeCommand(),
  peek: async () => (await import("./check.js")).peekCommand(),
  explain: async () => (await import("./explain.js")).explainCommand(),
  release: async () => (await import("./release.js")).releaseCommand(),
  settle: async () => (await import("./reservation.js")).settleCommand(),
  extend: async () => (await import("./reservation.js")).extendCommand(),
  cancel: async () => (await import("./reservation.js")).cancelCommand(),
  reset: async () => (await import("./reset.js")).resetCommand(),
  block: async () => (await import("./block.js")).blockCommand(),
  blocks: async () => (await import("./block.js")).blocksCommand(),
  keys: async () => (await import("./keys.js")).keysCommand(),
  rules: async () => (await import("./rules.js")).rulesCommand(),
  regions: async () => (await import("./regions.js")).regionsCommand(),
  tokens: async () => (await import("./tokens.js")).tokensCommand(),
  alerts: async () => (await import("./alerts.js")).alertsCommand(),
  audit: async () => (await import("./audit.js")).auditCommand(),
  top: async () => (await import("./top.js")).topCommand(),
  simulate: async () => (await import("./simulate.js")).simulateCommand(),
  suggest: async () => (await import("./suggest.js")).suggestCommand(),
  plan: async () => (await import("./plan.js")).planCommand(),
  compare: async () => (await import("./compare.js")).compareCommand(),
  bench: async () => (await import("./bench.js")).benchCommand(),
  doctor: async () => (await import("./doctor.js")).doctorCommand(),
  migrate: async () => (await import("./migrate.js")).migrateCommand(),
  completion: async () => (await import("./completion.js")).completionCommand(() => program(undefined)),
};

export async function main(argv: readonly string[]): Promise<void> {
  // A service that loses the reader of its output has failed; a command whose reader has seen enough (`| head`) is done.
  if (argv[2] !== "serve") process.stdout.on("error", endWithoutOutput);
  try {
    const asked = aliases[argv[2] ?? ""] ?? argv[2];
    const root = await program(asked);
    await root.parseAsync(asked === undefined ? [...argv] : [...argv.slice(0, 2), asked, ...argv.slice(3)]);
  } catch (error) {
    process.exitCode = report(error);
  }
}

function endWithoutOutput(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(exitStatus.done);
  // A full disk behind `> report.txt`: what was printed is not there in full.
  process.stderr.write(`output: could not be written: ${error.message}\n`);
  process.exit(exitStatus.failed);
}

/** With the command that is asked for; with all of them where that is none, for the help that lists them. */
export async function program(asked: string | undefined): Promise<Command> {
  const root = new Command("sluice")
    .description("Sluice: a distributed rate limiter")
    .version(packageVersion())
    .showHelpAfterError("(sluice help lists the commands)");
  const isKnown = asked !== undefined && Object.hasOwn(commands, asked);
  const makers = isKnown ? [commands[asked]!] : Object.values(commands);
  for (const command of await Promise.all(makers.map((make) => make()))) root.addCommand(command);
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
  return reportFailure(error);
}
