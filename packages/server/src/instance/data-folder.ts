/**
 * The folder for an instance's files: created, tested for writing and, with a memory store, locked for this process.
 * In: the setting. Out: a way to release it; or `invalid-setting` with the reason.
 */
import { lstatSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SluiceError } from "sluice";
import { type Holder, isAlive, isSame, readHolder, writeHolder } from "./folder-holder.js";
import { type FileLock, lockFile } from "./folder-lock.js";
import { readDrainNotice } from "./handover.js";

/** Empty; locked for the service's lifetime. */
const LOCK_FILE = "folder.lock";
/** Names the locking process, for people and for versions without the lock. */
const HOLDER_FILE = "service.lock";
const RETRY_MS = 20;
/** Allows a lock holder a second to write its name; after that the refusal goes out without a name. */
const MOST_LOOKS = 50;

interface Locks {
  /** The holder also has the kernel lock: if the lock is free the holder has ended, even if another process has its pid now. */
  readonly locks: true;
}

export function makeFolder(path: string, setting: string): void {
  try {
    makeEach(resolve(path));
    const probe = join(path, `.probe-${process.pid}`);
    writeFileSync(probe, "", { mode: 0o600 });
    // In containers that share the folder every service has pid 1, so another one may have removed the probe.
    rmSync(probe, { force: true });
  } catch (error) {
    throw new SluiceError(
      "invalid-setting",
      `${setting}: expected a folder that can be made and written, got ${JSON.stringify(path)}: ${(error as Error).message}`,
    );
  }
}

/** Level by level, because Node's `recursive` loops forever if a folder cannot be created and its parent exists (/proc). */
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
 * Two instances with memory stores would allow twice the limits and overwrite each other's files. A kernel lock decides between processes
 * that start at the same time, and is released by a crash. Waits for a holder that is draining.
 */
export async function holdFolder(path: string): Promise<{ release(): void }> {
  const folder = resolve(path);
  const file = join(folder, HOLDER_FILE);
  let seen: Holder | undefined;
  for (let looks = 1; ; looks++) {
    const lock = await lockFolder(path, folder);
    const holder = readHolder(file);
    if (lock !== undefined && !isHeldWithoutLock(holder)) return keep(lock, file);
    lock?.release();
    // A held lock proves that its holder is alive, even in another container with its own pid namespace.
    const notice = readDrainNotice(folder, lock === undefined ? holder : undefined);
    if (notice !== undefined && holder !== undefined && isSame(notice, holder)) {
      looks = 0;
    } else if ((seen !== undefined && holder !== undefined && isSame(seen, holder)) || looks === MOST_LOOKS) {
      throw inUse(path, holder);
    }
    // Look again before refusing: the holder may have just ended, or not yet have written its name.
    seen = isGone(holder) ? undefined : holder;
    await sleep(RETRY_MS);
  }
}

async function lockFolder(path: string, folder: string): Promise<FileLock | undefined> {
  const file = join(folder, LOCK_FILE);
  if (!isOurs(file))
    throw new SluiceError(
      "invalid-setting",
      `data-folder: expected ${LOCK_FILE} in ${JSON.stringify(path)} to be the empty file that Sluice makes there, got something ` +
        "else; remove it, or give --data-folder a folder of its own",
    );
  try {
    return await lockFile(file);
  } catch (error) {
    const { message } = error as Error;
    throw new SluiceError(
      "invalid-setting",
      `data-folder: expected a file system with file locks, got ${JSON.stringify(path)}: ${LOCK_FILE}: ${message}`,
    );
  }
}

/**
 * Whether nothing else occupies the lock file's name: a symlink would be followed, and locking a pipe or someone else's file has unknown
 * effects.
 */
function isOurs(file: string): boolean {
  const found = lstatSync(file, { throwIfNoEntry: false });
  return found === undefined || (found.isFile() && found.size === 0);
}

function keep(lock: FileLock, file: string): { release(): void } {
  try {
    writeHolder(file, { locks: true } satisfies Locks);
  } catch (error) {
    lock.release();
    throw error;
  }
  return {
    release() {
      try {
        // Remove it before releasing the lock: after that it may be the next holder's file.
        rmSync(file, { force: true });
      } catch {
        // The folder may have become read-only. The file then names a process without a lock, which keeps nobody out.
      } finally {
        lock.release();
      }
    },
  };
}

/**
 * Whether a version without the lock holds the folder. Our own pid is a leftover from an earlier run: in a container every service has pid
 * 1.
 */
function isHeldWithoutLock(holder: (Holder & Partial<Locks>) | undefined): boolean {
  return holder !== undefined && holder.locks !== true && holder.pid !== process.pid && isAlive(holder);
}

/** Whether the holder is a process of this host that has ended: the file still names it until the next holder writes its name. */
function isGone(holder: Holder | undefined): boolean {
  return holder?.host === hostname() && !isAlive(holder);
}

function inUse(path: string, holder: Holder | undefined): SluiceError {
  const elsewhere = holder?.host === hostname() ? "" : ` of host ${JSON.stringify(holder?.host)}`;
  const name = holder === undefined || isGone(holder) ? "another process" : `process ${holder.pid}${elsewhere}`;
  return new SluiceError(
    "invalid-setting",
    `data-folder: ${JSON.stringify(path)} is in use by ${name}, which counts in its own memory: the limits would be ` +
      "twice what the rules say. Stop it, give this one another --data-folder, or share counters by --store redis://…",
  );
}
