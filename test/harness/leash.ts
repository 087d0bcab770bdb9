/**
 * What a test file started or wrote to disk, and is taken down at its end: child processes and temporary folders.
 * A test that forgets to stop a server, throws before it could, or is interrupted leaves nothing behind.
 */
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const processes = new Set<ChildProcess>();
const folders = new Set<string>();
let watching = false;

export function leashProcess(child: ChildProcess): void {
  watchExit();
  processes.add(child);
  child.once("exit", () => processes.delete(child));
}

export function makeTempFolder(name: string): string {
  watchExit();
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`));
  folders.add(folder);
  return folder;
}

export function removeTempFolder(folder: string): void {
  // A server that has just ended may still be flushing; a few retries cost nothing.
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

function watchExit(): void {
  if (watching) return;
  watching = true;
  process.once("exit", takeDown);
  // A test worker whose parent was interrupted or killed lives on as long as its servers do.
  process.once("disconnect", takeDown);
  // Node runs no "exit" handler when a signal ends it, and vitest ends its workers by signal.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      takeDown();
      process.kill(process.pid, signal);
    });
  }
}

/** At the end of a test file, and of the process. */
export function takeDown(): void {
  // SIGKILL, because a paused process (SIGSTOP) does not hear SIGTERM.
  for (const child of processes) child.kill("SIGKILL");
  for (const folder of folders) removeTempFolder(folder);
  processes.clear();
  folders.clear();
}
