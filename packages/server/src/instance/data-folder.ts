/**
 * The folder that an instance keeps its files in: made, tried and, with counters in memory, held for this process alone.
 * In: the setting. Out: a way to let it go; or `invalid-setting` with what is wrong.
 */
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SluiceError } from "sluice";
import { type Holder, isAlive, readHolder, writeHolder } from "./folder-holder.js";
import { readDrainNotice } from "./handover.js";

const LOCK_FILE = "service.lock";
const RETRY_MS = 20;
/** By this process. */
const held = new Set<string>();

export function makeFolder(path: string, setting: string): void {
  try {
    makeEach(resolve(path));
    const probe = join(path, `.probe-${process.pid}`);
    writeFileSync(probe, "", { mode: 0o600 });
    rmSync(probe);
  } catch (error) {
    throw new SluiceError(
      "invalid-setting",
      `${setting}: expected a folder that can be made and written, got ${JSON.stringify(path)}: ${(error as Error).message}`,
    );
  }
}

/** Level by level: Node's own `recursive` never ends where a folder cannot be made and its parent exists (/proc). */
function makeEach(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path) makeEach(parent);
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process was faster.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !statSync(path).isDirectory()) throw error;
  }
}

/**
 * Two instances with counters in memory would admit twice what the rules say, and write over each other's files. A lock whose process
 * is gone (a crash) is taken over; one of another host cannot be judged and is taken over too. One that drains is waited for.
 */
export async function holdFolder(path: string): Promise<{ release(): void }> {
  const folder = resolve(path);
  const file = join(folder, LOCK_FILE);
  let holder = holderOf(file, folder);
  while (holder !== undefined && readDrainNotice(folder)?.pid === holder.pid) {
    await sleep(RETRY_MS);
    holder = holderOf(file, folder);
  }
  if (holder !== undefined) {
    throw new SluiceError(
      "invalid-setting",
      `data-folder: ${JSON.stringify(path)} is in use by process ${holder.pid}, which counts in its own memory: the limits would be ` +
        "twice what the rules say. Stop it, give this one another --data-folder, or share counters by --store redis://…",
    );
  }
  writeHolder(file);
  held.add(folder);
  return {
    release() {
      held.delete(folder);
      if (readHolder(file)?.pid === process.pid) rmSync(file, { force: true });
    },
  };
}

/** The live process that holds the folder. In a container every service is process 1: a lock of our own number is that of a run before. */
function holderOf(file: string, folder: string): Holder | undefined {
  const holder = readHolder(file);
  if (holder === undefined || !isAlive(holder)) return undefined;
  return holder.pid !== process.pid || held.has(folder) ? holder : undefined;
}
