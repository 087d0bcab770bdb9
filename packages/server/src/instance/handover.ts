/**
 * How a service hands its ports to the one that is started in its place, without a supervisor: by two notices in their data folder.
 * The predecessor puts one when it begins to drain: a successor then waits for its ports instead of failing. The successor puts one when
 * it starts, and again when it could serve: until then the predecessor goes on serving, within its drain timeout.
 * Out: what the other process has put, as long as it lives. Never: a failure; a service starts and ends whether it can write or not.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Holder, isAlive, readHolder, writeHolder } from "./folder-holder.js";

const DRAINING = "draining";
const SUCCESSOR = "successor";

interface DrainNotice {
  readonly ports: readonly number[];
  /** A process that hangs by then is not waited for. */
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

export function readDrainNotice(folder: string): (DrainNotice & Holder) | undefined {
  const notice = read<DrainNotice>(folder, DRAINING);
  return Array.isArray(notice?.ports) && endOf(notice) >= performance.now() ? notice : undefined;
}

/** No drain is longer, whatever a notice says. */
const LONGEST_DRAIN_MS = 3_600_000;
let lastSeen = { name: "", endsAtMonotonicMs: 0 };

/** By our own clock from the first look on: the system's may be set while we wait. */
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
    // The other process then acts as if this one were not there.
  }
}

/** Its own: the next process may have put one since. */
function remove(folder: string, name: string): void {
  const file = join(folder, name);
  try {
    if (readHolder(file)?.pid === process.pid) rmSync(file, { force: true });
  } catch {
    // Of a folder that was made read-only: it ends with this process.
  }
}

/** Another process's. In a container every service is process 1: a notice of our own number is that of a run before. */
function read<T>(folder: string, name: string): (T & Holder) | undefined {
  const notice = readHolder(join(folder, name));
  return notice !== undefined && notice.pid !== process.pid && isAlive(notice) ? (notice as T & Holder) : undefined;
}
