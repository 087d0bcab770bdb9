/** A file in a data folder that names a process: which it is, and whether that process lives. */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";

export interface Holder {
  readonly pid: number;
  readonly host: string;
}

/** Nothing where there is no such file, or another's. */
export function readHolder(file: string): Holder | undefined {
  try {
    const holder = JSON.parse(readFileSync(file, "utf8")) as Partial<Holder>;
    return Number.isSafeInteger(holder.pid) && typeof holder.host === "string" ? (holder as Holder) : undefined;
  } catch {
    return undefined;
  }
}

/** A process of another host cannot be judged, and counts as gone. */
export function isAlive({ pid, host }: Holder): boolean {
  if (host !== hostname()) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
