/**
 * The folder of `--envoy-config`: read whole, watched, swapped whole. A bad edit keeps what was in force and logs what is wrong.
 * Sub-folders are read too, and files without a suffix, as envoyproxy/ratelimit does. Files that are left out are named in the log.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { SluiceError } from "sluice";
import type { Log } from "../../log.js";
import { type GivenDomain, type TreeOptions, treeOf } from "./config-tree.js";
import { parseDomains } from "./descriptor-config.js";
import type { LimitTree } from "./limit-tree.js";
import { Mistakes } from "./mistakes.js";

/** Folders mounted from a Kubernetes ConfigMap change by a swapped link, which file watchers miss; looking is cheap. */
const LOOK_EVERY_MS = 500;
/** A change that goes on is read when it has ended: half of a copied folder is no configuration. */
const SETTLED_AFTER_MS = 50;
/** Bounds what a link to the root of a disk would make us read. */
const MOST_FILES = 10_000;
const MOST_DEPTH = 16;
const SUFFIXES = new Set(["", ".yaml", ".yml"]);

export interface FolderOptions extends TreeOptions {
  readonly folder: string;
}

interface Files {
  /** Relative to the folder, in order. */
  readonly read: readonly string[];
  /** Neither hidden nor of a known suffix: an operator may expect them to be loaded. */
  readonly leftOut: readonly string[];
}

/** Throws `invalid-setting` with every mistake, one a line, each with its file. */
export function readConfigFolder({ folder, ...options }: FolderOptions): {
  tree: LimitTree;
  leftOut: readonly string[];
} {
  const mistakes = new Mistakes();
  const given: GivenDomain[] = [];
  const files = filesIn(folder);
  for (const file of files.read) {
    const outcome = parseFile(join(folder, file));
    if ("mistakes" in outcome) for (const mistake of outcome.mistakes) mistakes.add(`${file}: ${mistake}`);
    else for (const domain of outcome.domains) given.push({ domain, from: file });
  }
  const outcome = treeOf(given, options);
  if ("mistakes" in outcome) for (const mistake of outcome.mistakes) mistakes.add(mistake);
  else if (!mistakes.some) return { tree: outcome.tree, leftOut: files.leftOut };
  const told = mistakes.list().map((mistake) => `envoy-config: ${mistake}`);
  throw new SluiceError("invalid-setting", told.join("\n"));
}

function parseFile(path: string): ReturnType<typeof parseDomains> {
  try {
    return parseDomains(readFileSync(path, "utf8"));
  } catch (error) {
    return { mistakes: [(error as Error).message] };
  }
}

interface WatchedFolder {
  readonly tree: LimitTree;
  close(): void;
}

export function watchConfigFolder(
  options: FolderOptions & {
    log: Log;
    onReload: (outcome: "loaded" | "failed") => void;
    onChange: (tree: LimitTree) => void;
  },
): WatchedFolder {
  const { folder, log, onReload, onChange } = options;
  let seen = fingerprint(folder);
  const first = readConfigFolder(options);
  warnOf(first.leftOut, { folder, log });
  onReload("loaded");
  /** Returns whether the folder stood still while it was read: of one that is being replaced, half would come in force. */
  const reload = (now: string): boolean => {
    try {
      const { tree, leftOut } = readConfigFolder(options);
      if (fingerprint(folder) !== now) return false;
      warnOf(leftOut, { folder, log });
      onChange(tree);
      onReload("loaded");
      log.info("Envoy's limits were read again", { folder, limits: tree.limits.length });
      if (tree.limits.length === 0) log.warn("no file in the folder has a limit: nothing is limited", { folder });
    } catch (error) {
      if (fingerprint(folder) !== now) return false;
      onReload("failed");
      log.error("Envoy's limits have mistakes; those in force stay", { folder, mistakes: (error as Error).message });
    }
    return true;
  };
  let timer = setTimeout(look, LOOK_EVERY_MS, seen);
  timer.unref();
  function look(before: string): void {
    const now = fingerprint(folder);
    let settled = now === before;
    if (settled && now !== seen) {
      settled = reload(now);
      if (settled) seen = now;
    }
    timer = setTimeout(look, settled ? LOOK_EVERY_MS : SETTLED_AFTER_MS, now);
    timer.unref();
  }
  return { tree: first.tree, close: () => clearTimeout(timer) };
}

function warnOf(leftOut: readonly string[], { folder, log }: { folder: string; log: Log }): void {
  if (leftOut.length === 0) return;
  log.warn("files that are not read: expected the suffix .yaml or .yml, or none", { folder, files: leftOut });
}

function filesIn(folder: string): Files {
  const read: string[] = [];
  const leftOut: string[] = [];
  const walk = (under: string, depth: number): void => {
    for (const name of readdirSync(join(folder, under)).sort()) {
      // Hidden names: a ConfigMap's own folders, editors' drafts.
      if (name.startsWith(".")) continue;
      const path = join(under, name);
      // A link to nothing has no stats.
      const stats = statSync(join(folder, path), { throwIfNoEntry: false });
      if (stats?.isDirectory() && depth < MOST_DEPTH) walk(path, depth + 1);
      else if (stats?.isFile() && SUFFIXES.has(extname(name))) read.push(path);
      else leftOut.push(path);
      if (read.length + leftOut.length > MOST_FILES) throw tooMany(folder);
    }
  };
  walk("", 0);
  return { read, leftOut };
}

function tooMany(folder: string): SluiceError {
  return new SluiceError("invalid-setting", `envoy-config: expected at most ${MOST_FILES} files in ${folder}`);
}

/** Changes when a file appears, goes, is written, or becomes readable. */
function fingerprint(folder: string): string {
  try {
    return filesIn(folder)
      .read.map((name) => {
        const { mtimeMs, ctimeMs, size, ino } = statSync(join(folder, name));
        return `${name} ${mtimeMs} ${ctimeMs} ${size} ${ino}`;
      })
      .join("\n");
  } catch (error) {
    // Between two links of a swapped folder there is nothing for a moment; then the next look sees the new one.
    return `unreadable: ${(error as NodeJS.ErrnoException).code}`;
  }
}
