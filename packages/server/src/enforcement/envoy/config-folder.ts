/**
 * Reads the `--envoy-config` folder.
 * Includes sub-folders and files without an extension, as envoyproxy/ratelimit does. Skipped files are logged by name.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { SluiceError } from "sluice";
import { runAtOnce, type Sliced, Stride } from "sluice/internal";
import { checkedDomains, type GivenDomain, type TreeOptions } from "./config-tree.js";
import { type Domain, parseDomains } from "./descriptor-config.js";
import { Mistakes } from "./mistakes.js";

/** Bounds the damage of a symlink to the root of a disk. */
const MOST_FILES = 10_000;
const MOST_DEPTH = 16;
const SUFFIXES = new Set(["", ".yaml", ".yml"]);

export interface FolderOptions extends TreeOptions {
  readonly folder: string;
}

interface Files {
  /** Relative to the folder, sorted. */
  readonly read: readonly string[];
  /** Not hidden, but with an unknown extension: the operator may expect them to be loaded. */
  readonly leftOut: readonly string[];
}

/** Throws `invalid-setting` with every mistake, one per line, each with its file. */
export function readConfigFolder({ folder, ...options }: FolderOptions): {
  domains: Domain[];
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
  const outcome = checkedDomains(given, options);
  if ("mistakes" in outcome) for (const mistake of outcome.mistakes) mistakes.add(mistake);
  else if (!mistakes.some) return { domains: outcome.domains, leftOut: files.leftOut };
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

function filesIn(folder: string): Files {
  return runAtOnce(findingFiles(folder, new Stride()));
}

function* findingFiles(folder: string, stride: Stride): Sliced<Files> {
  const read: string[] = [];
  const leftOut: string[] = [];
  function* walk(under: string, depth: number): Sliced<void> {
    for (const name of readdirSync(join(folder, under)).sort()) {
      // Hidden names: a ConfigMap's internal folders, editors' swap files.
      if (name.startsWith(".")) continue;
      const path = join(under, name);
      // A dangling symlink has no stats.
      const stats = statSync(join(folder, path), { throwIfNoEntry: false });
      if (stats?.isDirectory() && depth < MOST_DEPTH) yield* walk(path, depth + 1);
      else if (stats?.isFile() && SUFFIXES.has(extname(name))) read.push(path);
      else leftOut.push(path);
      if (read.length + leftOut.length > MOST_FILES) throw tooMany(folder);
      if (stride.isOver()) yield;
    }
  }
  yield* walk("", 0);
  return { read, leftOut };
}

function tooMany(folder: string): SluiceError {
  return new SluiceError("invalid-setting", `envoy-config: expected at most ${MOST_FILES} files in ${folder}`);
}

/** Total size of the files that would be read; 0 if there are none or the folder is missing. */
export function bytesIn(folder: string): number {
  try {
    return filesIn(folder).read.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  } catch {
    return 0;
  }
}

/** Changes when a file is added, removed, written, or becomes readable. */
export function* fingerprinting(folder: string): Sliced<string> {
  const stride = new Stride();
  const spelled: string[] = [];
  try {
    for (const name of (yield* findingFiles(folder, stride)).read) {
      const { mtimeMs, ctimeMs, size, ino } = statSync(join(folder, name));
      spelled.push(`${name} ${mtimeMs} ${ctimeMs} ${size} ${ino}`);
      if (stride.isOver()) yield;
    }
    return spelled.join("\n");
  } catch (error) {
    // While a ConfigMap's symlink is swapped, there is nothing for a moment; the next poll sees the new one.
    return `unreadable: ${(error as NodeJS.ErrnoException).code}`;
  }
}
