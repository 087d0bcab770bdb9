/**
 * `sluice doctor`: checks whether a service with these settings could run here, and suggests remedies. Takes the settings of `sluice
 * serve`. Starts and changes nothing, except for a counter of its own that it resets. Exit status 1 if a check failed.
 */
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { resolve } from "node:path";
import type { Command } from "commander";
import { SluiceError } from "sluice";
import { diagnoseStore } from "../analysis/diagnose-store.js";
import type { Finding } from "../analysis/store-findings.js";
import { probeDatabase } from "../configuration/probe-database.js";
import { packageVersion } from "../own-package.js";
import { printable } from "../printable.js";
import { ignoredVariables, resolveSettings, type Settings } from "../settings/settings.js";
import { CommandFailure } from "./command-failure.js";
import { mayWriteTo } from "./may-write-to.js";
import { colours, printJson, printLine } from "./print.js";
import { rulesIn } from "./rules-files.js";
import { flagsByName, settingsCommand } from "./settings-command.js";

export function doctorCommand(): Command {
  return settingsCommand("doctor")
    .description("check settings, rules, store, rights, clock and ports, and say what to do; takes the flags of serve")
    .option("--json", "print JSON", false)
    .action(async (_options: unknown, given: Command) => {
      const { config, json, ...flags } = given.opts<Record<string, string> & { json: boolean }>();
      const findings = await diagnose(() => resolveSettings({ flags: flagsByName(flags), configFile: config }));
      if (json) printJson({ findings });
      else show(findings);
      if (findings.some(({ verdict }) => verdict === "failed")) throw new CommandFailure("");
    });
}

async function diagnose(read: () => Settings): Promise<Finding[]> {
  const program: Finding = {
    check: "program",
    verdict: "ok",
    text: `sluice ${packageVersion()}, Node ${process.versions.node}`,
  };
  let settings: Settings;
  try {
    settings = read();
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const wrong = error.message.split("\n").map((text) => failed("settings", text, "`sluice serve --help` lists them"));
    return [program, ...wrong];
  }
  return [
    program,
    { check: "settings", verdict: "ok", text: "are understood" },
    ...ignoredVariables().map(ignoredFinding),
    exposure(settings),
    dataFolder(settings),
    await rules(settings),
    ...(await store(settings)),
    ...(await globalStore(settings)),
    ...(await ports(settings)),
  ];
}

const ignoredFinding = ({ name, why }: { name: string; why: string }): Finding => ({
  check: "settings",
  verdict: "warning",
  text: `the variable ${name} is ignored`,
  remedy: `unset it: ${why}`,
});

const failed = (check: string, text: string, remedy: string): Finding => ({ check, verdict: "failed", text, remedy });

function exposure({ host, "api-token": token }: Settings): Finding {
  const check = "access";
  if (token !== undefined) return { check, verdict: "ok", text: "the data plane asks for a token" };
  if (/^(127\.|::1$|localhost$)/.test(host)) return { check, verdict: "ok", text: "open, on this machine alone" };
  const remedy = "set --api-token, or let a firewall or a NetworkPolicy say who may ask";
  return { check, verdict: "warning", text: `the data plane is open to whoever reaches ${host}`, remedy };
}

function dataFolder({ "data-folder": folder }: Settings): Finding {
  const check = "data folder";
  const path = resolve(folder);
  if (mayWriteTo(path)) return { check, verdict: "ok", text: path };
  return failed(check, `${path} cannot be written`, "give it to the service's user, or name another by --data-folder");
}

async function rules(settings: Settings): Promise<Finding> {
  const { rules: file, database, "data-folder": folder } = settings;
  const check = "rules";
  try {
    if (file !== undefined) return { check, verdict: "ok", text: `${rulesIn(file).length} in ${file}` };
    const url = database ?? `sqlite:${folder}/sluice.db`;
    const path = url.startsWith("sqlite:") ? url.slice("sqlite:".length) : undefined;
    if (path !== undefined && !existsSync(path)) return { check, verdict: "ok", text: `${path} will be made` };
    return { check, verdict: "ok", text: `in ${await probeDatabase(url)}` };
  } catch (error) {
    const remedy =
      file === undefined ? "check --database, and that the server is up" : "`sluice rules lint` shows where";
    return failed(check, (error as Error).message, remedy);
  }
}

async function store({ store: url, "store-prefix": prefix }: Settings): Promise<Finding[]> {
  if (url !== "memory") return await diagnoseStore(url, prefix);
  return [{ check: "store", verdict: "ok", text: "memory: counters of this process alone, gone at its end" }];
}

async function globalStore({ "global-store": url, "store-prefix": prefix }: Settings): Promise<Finding[]> {
  if (url === undefined) return [];
  return (await diagnoseStore(url, prefix)).map((finding) => ({ ...finding, check: `global ${finding.check}` }));
}

async function ports({ host, port, "grpc-port": grpcPort }: Settings): Promise<Finding[]> {
  const named = [
    ["port", port],
    ["grpc-port", grpcPort],
  ] as const;
  return await Promise.all(
    named.map(async ([setting, number]): Promise<Finding> => {
      const check = `--${setting}`;
      const error = number === 0 ? undefined : await whyNotOpen(host, number);
      if (error === undefined) return { check, verdict: "ok", text: `${host}:${number} is free` };
      if (error === "EADDRINUSE") {
        const text = `${host}:${number} is taken`;
        return {
          check,
          verdict: "warning",
          text,
          remedy: `fine if that is Sluice itself; else choose another --${setting}`,
        };
      }
      return failed(check, `${host}:${number} cannot be opened: ${error}`, `choose another --host or --${setting}`);
    }),
  );
}

function whyNotOpen(host: string, port: number): Promise<string | undefined> {
  return new Promise((done) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => done(error.code ?? error.message));
    server.listen({ host, port }, () => server.close(() => done(undefined)));
  });
}

const marks = { ok: colours.green("ok     "), warning: colours.yellow("warning"), failed: colours.red("failed ") };

function show(findings: readonly Finding[]): void {
  const columns = Math.max(...findings.map(({ check }) => check.length));
  for (const { check, verdict, text, remedy } of findings) {
    printLine(`${marks[verdict]}  ${check.padEnd(columns)}  ${printable(text)}`);
    if (remedy !== undefined) printLine(`${" ".repeat(columns + 11)}-> ${printable(remedy)}`);
  }
}
