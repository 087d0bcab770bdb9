/**
 * A file in a data folder that names a process: which it is, and whether that process lives.
 * Never: a wait, however the file was made (a pipe), nor more bytes than such a file has.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";

export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When the process started, where the system tells: numbers of processes are used again, after a reboot at once. */
  readonly started?: string;
}

const MOST_BYTES = 64 * 1024;

/** Nothing where there is no such file, or another's. */
export function readHolder(file: string): Holder | undefined {
  try {
    const holder = JSON.parse(readSmallFile(file)) as Partial<Holder>;
    // To the system, 0 and numbers below it are groups of processes, which live as long as we do.
    const isProcess = Number.isSafeInteger(holder.pid) && holder.pid! > 0;
    return isProcess && typeof holder.host === "string" ? (holder as Holder) : undefined;
  } catch {
    return undefined;
  }
}

/** In one step: a reader finds all of it or none, and a link in its place is replaced, not followed. */
export function writeHolder(file: string, more: object = {}): void {
  const holder: Holder = { ...more, pid: process.pid, host: hostname() };
  const started = startOf(process.pid);
  const draft = `${file}.${process.pid}`;
  rmSync(draft, { force: true });
  writeFileSync(draft, JSON.stringify({ ...holder, ...(started !== undefined && { started }) }), {
    mode: 0o600,
    flag: "wx",
  });
  renameSync(draft, file);
}

/** A process of another host cannot be judged, and counts as gone. */
export function isAlive({ pid, host, started }: Holder): boolean {
  if (host !== hostname()) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  const now = started === undefined ? undefined : startOf(pid);
  return now === undefined || now === started;
}

/** In the system's own unit, since it booted. Undefined where there is no /proc. */
function startOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name of the program may hold anything, brackets and spaces too; the start is the 20th field behind it (proc(5)).
    return text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

/** Opened without waiting for a writer, as a pipe would. */
function readSmallFile(file: string): string {
  const handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(handle);
    if (!stat.isFile() || stat.size > MOST_BYTES) throw new Error("no file of ours");
    return readFileSync(handle, "utf8");
  } finally {
    closeSync(handle);
  }
}
