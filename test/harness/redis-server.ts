/**
 * A real Redis on loopback, for tests: own port, own folder, nothing persisted unless asked for.
 * It can be stopped, killed, frozen, restarted on its port and, under libfaketime, have its clock stepped.
 */
import { execFile } from "node:child_process";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { components, describeMissing } from "../../scripts/system-components.mjs";
import { freePort } from "./free-port.js";
import { makeTempFolder, removeTempFolder } from "./leash.js";
import { redisCommand } from "./redis-command.js";
import { type ServerProcess, startServerProcess } from "./server-process.js";

export interface RedisOptions {
  /** More of `redis-server`'s arguments; the later wins. `PORT` stands for the port that is chosen. */
  readonly args?: readonly string[];
  readonly port?: number;
  /** What redis-cli needs beside the address: a password, certificates. */
  readonly cliArgs?: readonly string[];
  /** Scheduled before other processes, where that is permitted. */
  readonly urgent?: boolean;
  /** Run under libfaketime, so that `stepClock` works. */
  readonly faketime?: boolean;
}

export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Of the process that runs now: a restart changes it. */
  readonly pid: number;
  /** Ends the server and removes its folder. */
  stop(): Promise<void>;
  /** SIGKILL: what clients see of a crash. */
  kill(): Promise<void>;
  /** Starts again on the same port; ends the running one first. Without persistence the data is gone. */
  restart(): Promise<void>;
  /** SIGSTOP: connections stay open, and nothing answers. */
  pause(): void;
  resume(): void;
  /** Sends a command and returns the reply as redis-cli prints it; rejects if Redis answers with an error. Options (`--scan`) start redis-cli. */
  cli(...args: string[]): Promise<string>;
  /** From the next command on, the server's clock is this far from the real one. Not cumulative; 0 is the real time. */
  stepClock(offsetSeconds: number): void;
}

const START_TRIES = 5;

export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const folder = makeTempFolder("redis");
  const clockFile = join(folder, "clock");
  const env = options.faketime === true ? faketimeEnv(clockFile) : {};

  const launch = (port: number): Promise<ServerProcess> => {
    mkdirSync(folder, { recursive: true });
    if (options.faketime === true) setClock(clockFile, 0);
    const own = (options.args ?? []).map((arg) => (arg === "PORT" ? String(port) : arg));
    const args = [...baseArgs(port, folder), ...own];
    return startServerProcess({
      command: redisBinary(),
      args,
      env,
      readyLine: /Ready to accept connections/,
      urgent: options.urgent ?? false,
    });
  };

  let { port, server } = await launchOnFreePort(launch, options.port);

  const redis: RedisServer = {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid;
    },
    async stop() {
      await server.stop();
      removeTempFolder(folder);
    },
    kill: () => server.kill(),
    async restart() {
      await server.stop();
      server = await launch(port);
    },
    pause: () => server.signal("SIGSTOP"),
    resume: () => server.signal("SIGCONT"),
    cli(...args) {
      const all = [...(options.cliArgs ?? []), ...args];
      return all[0]?.startsWith("-") === true ? redisCli(port, all) : redisCommand(port, all);
    },
    stepClock(offsetSeconds) {
      if (options.faketime !== true) throw new Error("stepClock needs startRedis({ faketime: true })");
      setClock(clockFile, offsetSeconds);
    },
    [Symbol.asyncDispose]: () => redis.stop(),
  };
  return redis;
}

function baseArgs(port: number, folder: string): string[] {
  const settings = {
    port: String(port),
    bind: "127.0.0.1",
    dir: folder,
    save: "",
    appendonly: "no",
    // Tests use DEBUG (SLEEP, SET-ACTIVE-EXPIRE), which Redis 7 refuses by default.
    "enable-debug-command": "yes",
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Between the look for a free port and the start, another process may have taken it: then try another. */
async function launchOnFreePort(
  launch: (port: number) => Promise<ServerProcess>,
  wanted: number | undefined,
): Promise<{ port: number; server: ServerProcess }> {
  for (let attempt = 1; ; attempt++) {
    const port = wanted ?? (await freePort());
    try {
      return { port, server: await launch(port) };
    } catch (error) {
      const taken = error instanceof Error && error.message.includes("Address already in use");
      if (!taken || wanted !== undefined || attempt === START_TRIES) throw error;
    }
  }
}

export function redisBinary(): string {
  return found("redis");
}

function found(id: keyof typeof components): string {
  const component = components[id];
  const file = component.find();
  if (file === undefined) throw new Error(describeMissing(component));
  return file;
}

async function redisCli(port: number, args: readonly string[]): Promise<string> {
  // -e turns an error reply into a failure of the command; without it, errors look like values.
  const options = ["-e", "-h", "127.0.0.1", "-p", String(port), ...args];
  const { stdout } = await promisify(execFile)("redis-cli", options, { timeout: 10_000 });
  return stdout.trimEnd();
}

function faketimeEnv(clockFile: string): Record<string, string> {
  return {
    // libfaketime's start allocates memory, and jemalloc's start asks for the time: each waits for the other, and
    // Redis crashes (libfaketime issue 130). With libc named before jemalloc, memory comes from libc's malloc.
    LD_PRELOAD: `${found("faketime")}:libc.so.6`,
    FAKETIME_TIMESTAMP_FILE: clockFile,
    FAKETIME_NO_CACHE: "1",
    // A real clock that steps leaves the monotonic one alone; timers must go on.
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
}

function setClock(clockFile: string, offsetSeconds: number): void {
  const sign = offsetSeconds < 0 ? "-" : "+";
  // Renamed into place: the server reads the file at any moment, and an empty one would mean the real time.
  writeFileSync(`${clockFile}.next`, `${sign}${Math.abs(offsetSeconds).toFixed(6)}\n`);
  renameSync(`${clockFile}.next`, clockFile);
}
