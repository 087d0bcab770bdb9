/**
 * A file in a data folder that identifies a process, and whether that process is alive.
 * Never: blocking, whatever the file is (a pipe), or reading more bytes than such a file has.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";

export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Start time of the process, if available: pids are reused, right away after a reboot. */
  readonly started?: string;
}

const MOST_BYTES = 64 * 1024;

/** Undefined if there is no such file, or it is something else. */
export function readHolder(file: string): Holder | undefined {
  try {
    const holder = JSON.parse(readSmallFile(file)) as Partial<Holder>;
    // For kill(2), 0 and negative numbers are process groups, which live as long as we do.
    const isProcess = Number.isSafeInteger(holder.pid) && holder.pid! > 0;
    return isProcess && typeof holder.host === "string" ? (holder as Holder) : undefined;
  } catch {
    return undefined;
  }
}

/** Atomic: a reader finds all of it or none, and a symlink in its place is replaced, not followed. */
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

export function isSame(one: Holder, other: Holder): boolean {
  return one.pid === other.pid && one.host === other.host && one.started === other.started;
}

/** A process on another host cannot be checked, and counts as gone. */
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

/** In clock ticks since boot. Undefined without /proc. */
function startOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The program's name may contain anything, including brackets and spaces; the start time is the 20th field after it (proc(5)).
    return text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

/** O_NONBLOCK: opening a pipe must not wait for a writer. */
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
