/**
 * The repository's sources as a graph: every code file, parsed, with its imports resolved to files.
 * In: the checkout. Out: files by path from the root, with "/" on every system. Reads the disk, executes nothing.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, posix, relative } from "node:path";
import { readSource } from "./read-source.mjs";
import { root } from "./run-command.mjs";

/**
 * @typedef {import("./read-source.mjs").Import & { target: string | undefined }} ResolvedImport target: a file of this repository.
 *
 * @typedef {object} SourceFile
 * @property {string} file Path from the root.
 * @property {string} text
 * @property {readonly ResolvedImport[]} imports
 * @property {readonly import("./read-source.mjs").Export[]} exports
 * @property {readonly import("./read-source.mjs").FunctionSpan[]} functions
 * @property {ReadonlyMap<string, number>} identifiers
 */

const FOLDERS = ["packages", "test", "scripts", "bench", "examples"];

/** @returns {ReadonlyMap<string, SourceFile>} */
export function readSourceTree() {
  const files = FOLDERS.flatMap(codeFiles);
  const known = new Set(files);
  const entries = packageEntries();
  return new Map(
    files.map((file) => {
      const text = readFileSync(join(root, file), "utf8");
      const source = readSource(file, text);
      const imports = source.imports.map((one) => ({ ...one, target: resolve(one.from, file, { known, entries }) }));
      return [file, { file, text, ...source, imports }];
    }),
  );
}

/** @param {string} file */
export function isTestFile(file) {
  return /^test\/|\.test\.tsx?$/.test(file);
}

/** A file of a package that ships: what `npm install` brings into a program. @param {string} file */
export function isShipped(file) {
  return /^packages\/[^/]+\/src\//.test(file) && !isTestFile(file) && !file.endsWith(".generated.ts");
}

/**
 * Specifiers of the packages' entry points -> source files: `sluice/redis` -> `packages/sluice/src/redis.ts`.
 * @returns {Map<string, string>}
 */
export function packageEntries() {
  /** @type {Map<string, string>} */
  const entries = new Map();
  for (const folder of readdirSync(join(root, "packages"))) {
    const { name, exports = {} } = readManifest(`packages/${folder}/package.json`);
    for (const [subpath, target] of Object.entries(exports)) {
      const stem = /^\.\/dist\/esm\/(.+)\.js$/.exec(target.import?.default ?? "")?.[1];
      if (stem !== undefined) entries.set(`${name}${subpath.slice(1)}`, `packages/${folder}/src/${stem}.ts`);
    }
  }
  return entries;
}

/**
 * @param {string} file
 * @returns {{ name: string, exports?: Record<string, { import?: { default: string } }>, dependencies?: Record<string, string> }}
 */
export function readManifest(file) {
  return JSON.parse(readFileSync(join(root, file), "utf8"));
}

/** @param {string} folder @returns {string[]} */
function codeFiles(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(tsx?|mjs|js)$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .filter((file) => !/(^|\/)(node_modules|dist|bundle|results)\//.test(file));
}

/**
 * @param {string} from
 * @param {string} importer
 * @param {{ known: ReadonlySet<string>, entries: ReadonlyMap<string, string> }} where
 */
function resolve(from, importer, { known, entries }) {
  const entry = entries.get(from);
  if (entry !== undefined) return entry;
  // The console takes types of the service from its built declarations.
  const built = from.replace(/^sluice-server\//, "packages/server/src/");
  if (built === from && !from.startsWith(".")) return undefined;
  const path = built === from ? posix.join(posix.dirname(importer), from) : built;
  const source = path
    .replace(/^packages\/(\w+)\/dist\/(esm\/)?/, "packages/$1/src/")
    // The command's bundle is made of the files of cli.
    .replace(/^packages\/server\/bundle\//, "packages/server/src/cli/");
  return [source, source.replace(/\.js$/, ".ts"), source.replace(/\.js$/, ".tsx")].find((file) => known.has(file));
}
