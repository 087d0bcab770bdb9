/**
 * Watches the `--envoy-config` folder: read as a whole, swapped as a whole. A broken edit keeps the limits in force and logs the mistakes.
 * Neither polling nor reading blocks requests: the folder may have ten thousand files and a hundred thousand limits.
 */
import { runAtOnce, runInSlices } from "sluice/internal";
import type { Log } from "../../log.js";
import { type FolderOptions, fingerprinting, readConfigFolder } from "./config-folder.js";
import { type LimitTree, limitTree } from "./limit-tree.js";
import { readLimits } from "./limit-worker.js";

/** Polled, because folders mounted from a Kubernetes ConfigMap change by a symlink swap, which file watchers miss. */
const LOOK_EVERY_MS = 500;
/** Debounce: wait for a change to finish, as half of a copied folder is no configuration. */
const SETTLED_AFTER_MS = 50;

interface WatchedFolder {
  readonly tree: LimitTree;
  close(): void;
}

type WatchOptions = FolderOptions & {
  log: Log;
  onReload: (outcome: "loaded" | "failed") => void;
  /** Puts the tree in force. */
  onChange: (tree: LimitTree) => Promise<void> | void;
};

export function watchConfigFolder(options: WatchOptions): WatchedFolder {
  const { folder, merge, allQuotas, onReload } = options;
  // Only options that can be cloned to a thread.
  const folderOptions = { folder, merge, ...(allQuotas !== undefined && { allQuotas }) };
  let seen = runAtOnce(fingerprinting(folder));
  const first = readConfigFolder(options);
  warnOf(first.leftOut, options);
  onReload("loaded");
  let timer: NodeJS.Timeout;
  let isClosed = false;
  const lookLater = (waitMs: number, before: string): void => {
    if (isClosed) return;
    timer = setTimeout(() => void look(before), waitMs).unref();
  };
  async function look(before: string): Promise<void> {
    const now = await runInSlices(fingerprinting(folder));
    let settled = now === before;
    if (settled && now !== seen) {
      settled = await reload(now);
      if (settled) seen = now;
    }
    lookLater(settled ? LOOK_EVERY_MS : SETTLED_AFTER_MS, now);
  }
  /** Returns whether the folder was stable during the read: otherwise half of a folder being replaced could come into force. */
  async function reload(now: string): Promise<boolean> {
    const read = await readLimits({ folder: folderOptions }).catch((error: Error) => error);
    if ((await runInSlices(fingerprinting(folder))) !== now) return false;
    if (!isClosed) await bringInForce(read, options);
    return true;
  }
  lookLater(LOOK_EVERY_MS, seen);
  return {
    tree: limitTree(first.domains, options),
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

async function bringInForce(
  read: Awaited<ReturnType<typeof readLimits>> | Error,
  options: WatchOptions,
): Promise<void> {
  const { folder, log, onReload, onChange } = options;
  if (read instanceof Error) {
    onReload("failed");
    log.error("Envoy's limits have mistakes; those in force stay", { folder, mistakes: read.message });
    return;
  }
  const { tree, leftOut } = read;
  warnOf(leftOut, options);
  try {
    await onChange(tree);
  } catch (error) {
    onReload("failed");
    log.error("Envoy's limits were refused", { error: String(error) });
    return;
  }
  onReload("loaded");
  log.info("Envoy's limits were read again", { folder, limits: tree.limits.length });
  if (tree.limits.length === 0) log.warn("no file in the folder has a limit: nothing is limited", { folder });
}

function warnOf(leftOut: readonly string[], { folder, log }: { folder: string; log: Log }): void {
  if (leftOut.length === 0) return;
  log.warn("files that are not read: expected the suffix .yaml or .yml, or none", { folder, files: leftOut });
}
