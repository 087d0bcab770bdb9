/**
 * The `sluice` command. Exit status: 0 done, 1 failed, 2 misuse, 3 refused (`check`).
 */
import { Command, CommanderError } from "commander";
import { packageVersion } from "../own-package.js";
import { exitStatus } from "./command-failure.js";
import { reportFailure } from "./report-failure.js";

/** Command aliases; a released name must keep working. */
const aliases: Readonly<Record<string, string>> = { blocked: "blocks" };

type Makers = Readonly<Record<string, () => Promise<Command>>>;

/** By help heading. Commands are loaded on demand: `serve` opens its port before any other code is loaded. */
const groups: Readonly<Record<string, Makers>> = {
  "Run the service:": {
    serve: async () => (await import("./serve.js")).serveCommand(),
    doctor: async () => (await import("./doctor.js")).doctorCommand(),
  },
  "Decide:": {
    check: async () => (await import("./check.js")).checkCommand(),
    peek: async () => (await import("./check.js")).peekCommand(),
    explain: async () => (await import("./explain.js")).explainCommand(),
    charge: async () => (await import("./check.js")).chargeCommand(),
    release: async () => (await import("./release.js")).releaseCommand(),
    settle: async () => (await import("./reservation.js")).settleCommand(),
    extend: async () => (await import("./reservation.js")).extendCommand(),
    cancel: async () => (await import("./reservation.js")).cancelCommand(),
  },
  "Rules and keys:": {
    rules: async () => (await import("./rules.js")).rulesCommand(),
    keys: async () => (await import("./keys.js")).keysCommand(),
    reset: async () => (await import("./reset.js")).resetCommand(),
    block: async () => (await import("./block.js")).blockCommand(),
    blocks: async () => (await import("./block.js")).blocksCommand(),
  },
  "Operate:": {
    top: async () => (await import("./top.js")).topCommand(),
    alerts: async () => (await import("./alerts.js")).alertsCommand(),
    regions: async () => (await import("./regions.js")).regionsCommand(),
    audit: async () => (await import("./audit.js")).auditCommand(),
    tokens: async () => (await import("./tokens.js")).tokensCommand(),
    bench: async () => (await import("./bench.js")).benchCommand(),
  },
  "Choose limits:": {
    simulate: async () => (await import("./simulate.js")).simulateCommand(),
    suggest: async () => (await import("./suggest.js")).suggestCommand(),
    plan: async () => (await import("./plan.js")).planCommand(),
    compare: async () => (await import("./compare.js")).compareCommand(),
    migrate: async () => (await import("./migrate.js")).migrateCommand(),
  },
  "More:": {
    completion: async () => (await import("./completion.js")).completionCommand(() => program(undefined)),
  },
};
const commands = new Map(
  Object.entries(groups).flatMap(([heading, makers]) =>
    Object.entries(makers).map(([name, make]) => [name, async () => (await make()).helpGroup(heading)] as const),
  ),
);

export async function main(argv: readonly string[]): Promise<void> {
  // A service that loses its output has failed; a command whose reader has closed the pipe (`| head`) is done.
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
  // For example a full disk with `> report.txt`: the output is incomplete.
  process.stderr.write(`output: could not be written: ${error.message}\n`);
  process.exit(exitStatus.failed);
}

/** Loads the requested command; all of them if there is none, for the help. */
export async function program(asked: string | undefined): Promise<Command> {
  const root = new Command("sluice")
    .description("Sluice: a distributed rate limiter")
    .version(packageVersion())
    .showHelpAfterError("(sluice help lists the commands)")
    .commandsGroup("More:")
    .helpCommand("help [command]", "arguments and options of a command")
    // Omit arguments, which would take half of an 80-column terminal; `sluice help COMMAND` lists them.
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addHelpText("after", "\nA first try: sluice serve, and in a second terminal: sluice check user=42");
  const known = commands.get(asked ?? "");
  const makers = known === undefined ? [...commands.values()] : [known];
  for (const command of await Promise.all(makers.map((make) => make()))) root.addCommand(command);
  throwInsteadOfExit(root);
  return root;
}

/** Commander exits with status 1 for misuse; ours is 2, as 1 means that the work failed. */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const inner of command.commands) throwInsteadOfExit(inner);
}

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitStatus.done : exitStatus.misuse;
  return reportFailure(error);
}
