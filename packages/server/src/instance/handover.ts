/**
 * Handover of ports to a successor without a supervisor, through two notices in the shared data folder.
 * The predecessor writes one when it starts to drain: a successor then waits for its ports instead of failing. The successor writes one
 * when it starts, and again when it is ready: until then the predecessor keeps serving, up to its drain timeout.
 * Out: the other process's notice, while that process is alive. Never fails: a service starts and ends whether it can write or not.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Holder, isAlive, isSame, readHolder, writeHolder } from "./folder-holder.js";

const DRAINING = "draining";
const SUCCESSOR = "successor";

interface DrainNotice {
  readonly ports: readonly number[];
  /** A process that hangs past this time is not waited for. */
  readonly untilMs: number;
}

interface SuccessorNotice {
  readonly isReady: boolean;
}

export function putDrainNotice(folder: string, notice: DrainNotice): void {
  put(folder, DRAINING, notice);
}

export function removeDrainNotice(folder: string): void {
  remove(folder, DRAINING);
}

/** `living`: a process known to be alive by its lock; in another container its pid says nothing. */
export function readDrainNotice(folder: string, living?: Holder): (DrainNotice & Holder) | undefined {
  const notice = read<DrainNotice>(folder, DRAINING, living);
  return Array.isArray(notice?.ports) && endOf(notice) >= performance.now() ? notice : undefined;
}

/** Upper bound on a drain, whatever the notice says. */
const LONGEST_DRAIN_MS = 3_600_000;
let lastSeen = { name: "", endsAtMonotonicMs: 0 };

/** By the monotonic clock from the first look on: the system clock may change while we wait. */
function endOf({ pid, untilMs }: DrainNotice & Holder): number {
  const name = `${pid} ${untilMs}`;
  if (lastSeen.name !== name) {
    const leftMs = Math.min(Number(untilMs) - Date.now(), LONGEST_DRAIN_MS);
    lastSeen = { name, endsAtMonotonicMs: performance.now() + leftMs };
  }
  return lastSeen.endsAtMonotonicMs;
}

export function putSuccessorNotice(folder: string, notice: SuccessorNotice): void {
  put(folder, SUCCESSOR, notice);
}

export function removeSuccessorNotice(folder: string): void {
  remove(folder, SUCCESSOR);
}

export function readSuccessorNotice(folder: string): SuccessorNotice | undefined {
  return read<SuccessorNotice>(folder, SUCCESSOR);
}

function put(folder: string, name: string, notice: object): void {
  try {
    writeHolder(join(folder, name), notice);
  } catch {
    // The other process then behaves as if this one did not exist.
  }
}

/** Removes only our own notice: the next process may have written one since. */
function remove(folder: string, name: string): void {
  const file = join(folder, name);
  try {
    if (readHolder(file)?.pid === process.pid) rmSync(file, { force: true });
  } catch {
    // The folder may have become read-only: the notice ends with this process.
  }
}

/** Reads another process's notice. One with our own pid is from an earlier run: in a container every service has pid 1. */
function read<T>(folder: string, name: string, living?: Holder): (T & Holder) | undefined {
  const notice = readHolder(join(folder, name)) as (T & Holder) | undefined;
  if (notice === undefined) return undefined;
  if (living !== undefined && isSame(notice, living)) return notice;
  return notice.pid !== process.pid && isAlive(notice) ? notice : undefined;
}
