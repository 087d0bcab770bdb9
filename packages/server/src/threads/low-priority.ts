/**
 * Lowers the priority of worker threads, so that parsing a large body or folder does not take a core from the thread that answers checks on
 * small machines. Linux has per-thread priorities; elsewhere, or without permission, this does nothing.
 */
import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";
import { isMainThread } from "node:worker_threads";

/** Niceness 10: about a tenth of the CPU time of a normal thread that competes for the same core. */
const NICENESS = 10;

/** Applies to the calling thread. Returns whether the priority was lowered. */
export function lowerPriority(): boolean {
  // The main thread decides requests; in tests from source it also does this work.
  if (isMainThread) return false;
  try {
    const thread = readlinkSync("/proc/thread-self").split("/").at(-1);
    setPriority(Number(thread), NICENESS);
    return true;
  } catch {
    return false;
  }
}
