/**
 * Tells when a file may have changed. Editors and Kubernetes replace a file rather than write into it, so the folder is watched;
 * and where watching does not work (network drives), the file is looked at now and then.
 */
import { type FSWatcher, watch } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname } from "node:path";

/** Writers write in several steps: wait for the last. */
const SETTLE_MS = 50;
const LOOK_AFTER_MS = 20;

interface WatchOptions {
  readonly pollMs: number;
  readonly onChange: () => void;
  /** The mark from before the caller read the file: a change since then is reported too. Default: the first look's. */
  readonly seen?: string;
}

export function watchFile(file: string, { pollMs, onChange, seen: readMark }: WatchOptions): () => void {
  let settling: NodeJS.Timeout | undefined;
  let seen = readMark;
  const changed = () => {
    clearTimeout(settling);
    settling = setTimeout(onChange, SETTLE_MS);
    settling.unref();
  };
  const look = async () => {
    const now = await fileMark(file);
    if (seen !== undefined && seen !== now) changed();
    seen = now;
  };
  // A folder that others write to, such as one of logs, has thousands of events a second: they share a look.
  let looking: NodeJS.Timeout | undefined;
  const lookSoon = () => {
    looking ??= setTimeout(() => {
      looking = undefined;
      void look();
    }, LOOK_AFTER_MS).unref();
  };
  const poll = setInterval(() => void look(), pollMs);
  poll.unref();
  void look();
  const watcher = watchFolder(dirname(file), lookSoon);
  return () => {
    clearInterval(poll);
    clearTimeout(settling);
    clearTimeout(looking);
    watcher?.close();
  };
}

/** Another mark means another content, as far as one can tell without reading it. */
export function fileMark(file: string): Promise<string> {
  return stat(file).then(
    ({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`,
    () => "gone",
  );
}

function watchFolder(folder: string, onEvent: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, onEvent);
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    // No watching here, or no watches left: the poll serves.
    return undefined;
  }
}
