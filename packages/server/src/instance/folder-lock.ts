/**
 * An advisory kernel lock on a file: one process holds it, and it is released when that process ends, however it ends.
 * Node has no flock; SQLite, which every service loads anyway, takes the equivalent (fcntl on POSIX systems, LockFileEx on Windows).
 * Rejected: a file created with O_EXCL or link. It outlives a killed process, and two processes that consider it stale race to replace it.
 * A pid cannot be checked from another container either, where every service has pid 1.
 *
 * Assumes a local file system, one kernel. On NFS a lock is as good as the server's lock service.
 * Never read or write the file elsewhere in this process: POSIX drops a process's locks when it closes any descriptor of the file.
 */
import { closeSync, openSync } from "node:fs";
import Database from "libsql/promise";

export interface FileLock {
  release(): void;
}

/**
 * Undefined if another process, or another part of this one, holds the lock. Never delete the file: a lock on a deleted file excludes
 * nobody.
 */
export async function lockFile(file: string): Promise<FileLock | undefined> {
  makePrivate(file);
  const connection = new Database(file, {});
  try {
    // RESERVED: held by one connection at a time; readers do not matter. Nothing is ever written, so there is no journal to recover.
    await connection.exec("BEGIN IMMEDIATE");
  } catch (error) {
    connection.close();
    if ((error as { code?: string }).code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  return { release: () => connection.close() };
}

/** Other users could lock a file that they can read. An existing file is not opened here: closing it would drop our own lock. */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
