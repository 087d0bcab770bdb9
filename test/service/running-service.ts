/**
 * The service for tests: in this process, from the sources, on free ports of loopback, in a folder of its own.
 * `startServiceProcess` starts the built `sluice` command instead, for what only a process has: signals, exit status, workers.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Rule } from "sluice";
import { createLog } from "../../packages/server/src/log.js";
import { type Service, startService } from "../../packages/server/src/service/service.js";
import { resolveSettings } from "../../packages/server/src/settings/settings.js";
import { activated, type HeldSockets } from "../harness/held-sockets.js";
import { leashProcess, makeTempFolder, removeTempFolder } from "../harness/leash.js";

export interface RunningService extends Service, AsyncDisposable {
  readonly folder: string;
}

export interface StartOptions {
  readonly rules?: readonly Rule[];
  /** By setting name. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Written into the folder before the start, by name; a setting may name them relative to it. */
  readonly files?: Readonly<Record<string, string>>;
  /** Of a process: sockets that it inherits, with their names. */
  readonly sockets?: { readonly held: HeldSockets; readonly names?: readonly string[] };
}

const anyPort = { port: "0", "grpc-port": "0", "proxy-port": "0" };

export async function startTestService(options: StartOptions = {}): Promise<RunningService> {
  const folder = makeTempFolder("service");
  const flags = flagsIn(folder, options);
  const settings = resolveSettings({ flags: { "log-level": "silent", ...flags }, env: {} });
  const service = await startService({ settings, log: createLog(settings["log-level"]) });
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= service.close().then(() => removeTempFolder(folder));
    return closed;
  };
  return {
    http: service.http,
    grpc: service.grpc,
    proxy: service.proxy,
    adminTokenFile: service.adminTokenFile,
    get rules() {
      return service.rules;
    },
    get rulesVersion() {
      return service.rulesVersion;
    },
    folder,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function flagsIn(folder: string, { rules, settings = {}, files = {} }: StartOptions): Record<string, string> {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const flags: Record<string, string> = {
    ...anyPort,
    "data-folder": folder,
    "drain-delay": "0",
    "drain-timeout": "2s",
    ...settings,
  };
  for (const name of ["attributes", "envoy-config", "usage-prices", "usage-tokenizer", "rules"]) {
    if (flags[name] !== undefined) flags[name] = resolve(folder, flags[name]);
  }
  if (rules !== undefined) {
    flags.rules = join(folder, "rules.json");
    writeFileSync(flags.rules, JSON.stringify({ rules }));
  }
  return flags;
}

const memoryReport = new URL("report-memory.mjs", import.meta.url).href;
const bin = fileURLToPath(new URL("../../packages/server/bin/sluice.js", import.meta.url));

export interface ServiceProcess {
  readonly child: ChildProcess;
  /** Megabytes that are still reachable after a full collection: what a leak would raise, whatever the collector does at its own time. */
  liveMb(): Promise<number>;
  readonly http: string;
  readonly grpc: string;
  readonly proxy: string | undefined;
  readonly folder: string;
  output(): string;
  /** Sends a signal and resolves with the exit status, or the signal that ended it. */
  end(signal?: NodeJS.Signals): Promise<number | string>;
}

/** Needs `npm run build`. Resolves when it serves; `onSpawn` has the process before. */
export async function startServiceProcess(
  options: StartOptions = {},
  onSpawn: (child: ChildProcess) => void = () => undefined,
): Promise<ServiceProcess> {
  const folder = makeTempFolder("service");
  const flags = Object.entries(flagsIn(folder, options)).flatMap(([name, value]) => [`--${name}`, value]);
  const { command, args } = serveCommand(["--expose-gc", "--import", memoryReport, bin, "serve", ...flags], options);
  const child = spawn(command, args, {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe", ...(options.sockets?.held.descriptors ?? []), "ipc"],
  });
  leashProcess(child);
  onSpawn(child);
  const ended = new Promise<number | string>((resolve) =>
    child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown")),
  );
  let output = "";
  await new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      if (output.includes("/v1/check -H")) resolve();
    };
    child.stdout!.on("data", read);
    child.stderr!.on("data", read);
    void ended.then((status) => reject(new Error(`the service ended with ${status}:\n${output}`)));
  });
  return {
    child,
    async liveMb() {
      child.send("memory");
      const [bytes] = (await once(child, "message")) as [number];
      return bytes / 2 ** 20;
    },
    http: addressIn(output, /HTTP +(\S+)/)!,
    grpc: addressIn(output, /gRPC +(\S+)/)!,
    proxy: addressIn(output, /proxy +(\S+) ->/),
    folder,
    output: () => output,
    async end(signal = "SIGTERM") {
      child.kill(signal);
      const status = await ended;
      removeTempFolder(folder);
      return status;
    },
  };
}

function serveCommand(args: string[], { sockets }: StartOptions): { command: string; args: string[] } {
  if (sockets === undefined) return { command: process.execPath, args };
  const { held, names } = sockets;
  const env = {
    LISTEN_FDS: String(held.ports.length),
    ...(names !== undefined && { LISTEN_FDNAMES: names.join(":") }),
  };
  return activated([process.execPath, ...args], env);
}

function addressIn(output: string, pattern: RegExp): string | undefined {
  return pattern.exec(output)?.[1];
}

/** Runs the built `sluice` command to its end. */
export function runSluice(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
): Promise<{ status: number; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [bin, ...args], {
      cwd: options.cwd,
      env: { ...process.env, NO_COLOR: "1", ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    leashProcess(child);
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    child.once("error", reject);
    child.once("close", (code) => resolve({ status: code ?? -1, stdout, stderr }));
  });
}

/** What a test knows of an answer: it asserts the rest. */
// biome-ignore lint/suspicious/noExplicitAny: an answer is asserted field by field, not typed.
export type Json = any;

/** POST with a JSON body; the answer's status and parsed body. */
export async function postJson(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; body: Json }> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text === "" ? undefined : JSON.parse(text) };
}
