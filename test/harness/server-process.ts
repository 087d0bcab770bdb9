/**
 * A server as a child process: started until it says that it is ready, ended by its process id.
 * In: a command and the line of its log that means "ready". Out: a handle to signal it and to await its end.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { getPriority, setPriority } from "node:os";
import { leashProcess } from "./leash.js";

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to this process's own. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Looked for in stdout and stderr. */
  readonly readyLine: RegExp;
  readonly timeoutMs?: number;
  /** Scheduled before other processes, where that is permitted: for tests that measure what a server does, not what a machine does. */
  readonly urgent?: boolean;
}

export interface ServerProcess {
  readonly pid: number;
  /** All that it has written so far, for messages. */
  log(): string;
  isRunning(): boolean;
  signal(signal: NodeJS.Signals): void;
  /** Asks it to end (SIGTERM), insists (SIGKILL) after two seconds. Harmless if it has ended. */
  stop(): Promise<void>;
  kill(): Promise<void>;
}

const PATIENCE_MS = 2_000;

export async function startServerProcess(server: ServerCommand): Promise<ServerProcess> {
  const child = spawn(server.command, server.args, {
    env: { ...process.env, ...server.env },
    cwd: server.cwd,
    stdio: ["ignore", "pipe", "pipe"],
  });
  leashProcess(child);
  if (server.urgent === true) makeUrgent(child.pid);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));

  let log = "";
  let ready = false;
  await new Promise<void>((resolve, reject) => {
    const fail = (what: string) => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      reject(new Error(`${server.command} ${what}\n${log}`));
    };
    const timeoutMs = server.timeoutMs ?? 60_000;
    const timer = setTimeout(() => fail(`was not ready within ${timeoutMs} ms`), timeoutMs);
    const read = (chunk: Buffer) => {
      log += chunk.toString();
      if (ready || !server.readyLine.test(log)) return;
      ready = true;
      clearTimeout(timer);
      resolve();
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("error", (error) => fail(`could not be started: ${error.message}`));
    // "close" rather than "exit": by then all of the log has been read, and it says why.
    child.once("close", (code, signal) => fail(`ended before it was ready (${signal ?? `status ${code}`})`));
  });
  return handleOf(child, { exited, log: () => log });
}

const URGENT = -15;

let firstPriority: number | undefined;

/** Of this process, if no other is named, until the test file's end. Only root may; for others it stays as it is. */
export function makeUrgent(pid = 0): void {
  if (pid === 0) firstPriority ??= getPriority();
  try {
    setPriority(pid, URGENT);
  } catch {
    // Not permitted: figures are noisier then.
  }
}

/** This process is scheduled as it was before a test made it urgent. */
export function calmDown(): void {
  if (firstPriority !== undefined) setPriority(firstPriority);
}

function handleOf(child: ChildProcess, { exited, log }: { exited: Promise<void>; log: () => string }): ServerProcess {
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  return {
    pid: child.pid!,
    log,
    isRunning,
    signal: (signal) => void child.kill(signal),
    async stop() {
      if (!isRunning()) return;
      child.kill("SIGTERM");
      // A paused process hears SIGTERM only when it goes on.
      child.kill("SIGCONT");
      const insist = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
      await exited;
      clearTimeout(insist);
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}
