/**
 * Writes the diagrams of docs/architecture.md: a box per room (a folder of a package's sources), an arrow per import between rooms.
 * The prose around them is kept.
 *
 *   npm run docs:architecture
 *
 * test/architecture-page.test.ts fails while the page differs from what this would write.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./run-command.mjs";
import { isShipped, packageEntries, readSourceTree } from "./source-tree.mjs";

/**
 * Rooms that lie below another room's folder. All other rooms are the first folder; files beside the folders are entry points of the
 * package, or its ground.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const nestedRooms = {
  sluice: ["store/memory", "store/redis/cluster", "store/redis"],
  server: [
    "configuration/repository",
    "enforcement/attributes",
    "enforcement/envoy",
    "enforcement/forward-auth",
    "enforcement/http",
    "enforcement/proxy",
    "monitoring/alerts",
    "monitoring/history",
    "monitoring/otlp",
    "monitoring/store-view",
    "monitoring/top-keys",
  ],
  dashboard: [],
};

/** @typedef {{ from: string, to: string, typesOnly: boolean }} Arrow */

/** @param {string} page @param {ReturnType<typeof readSourceTree>} tree */
export function withDiagrams(page, tree) {
  return Object.keys(nestedRooms).reduce((text, name) => {
    const begin = `<!-- diagram of packages/${name}: npm run docs:architecture -->`;
    const end = `<!-- end of the diagram of packages/${name} -->`;
    const from = text.indexOf(begin);
    const to = text.indexOf(end);
    if (from < 0 || to < from) throw new Error(`docs/architecture.md: expected the lines ${begin} and ${end}`);
    return `${text.slice(0, from)}${begin}\n\n${diagram(name, tree)}\n\n${text.slice(to)}`;
  }, page);
}

/** @param {string} name @param {ReturnType<typeof readSourceTree>} tree */
function diagram(name, tree) {
  const folder = `packages/${name}/src/`;
  const files = [...tree.values()].filter(({ file }) => file.startsWith(folder) && isShipped(file));
  const entries = new Set(packageEntries().values());
  /** @param {string} file */
  const roomOf = (file) => {
    const path = file.slice(folder.length);
    if (!path.includes("/")) return entries.has(file) ? "entry points" : "ground";
    return nestedRooms[name]?.find((room) => path.startsWith(`${room}/`)) ?? /** @type {string} */ (path.split("/")[0]);
  };
  /** @type {Set<string>} */
  const rooms = new Set();
  /** @type {Map<string, Arrow>} */
  const arrows = new Map();
  for (const { file, imports } of files) {
    const from = roomOf(file);
    rooms.add(from);
    for (const { target, typesOnly } of imports) {
      if (target === undefined || !target.startsWith(folder)) continue;
      const to = roomOf(target);
      if (to === from) continue;
      const known = arrows.get(`${from} ${to}`)?.typesOnly ?? true;
      arrows.set(`${from} ${to}`, { from, to, typesOnly: known && typesOnly });
    }
  }
  const boxes = [...rooms].sort().map((room) => `  ${idOf(room)}["${room}"]`);
  const lines = [...arrows.values()]
    .map(({ from, to, typesOnly }) => `  ${idOf(from)} ${typesOnly ? "-.->" : "-->"} ${idOf(to)}`)
    .sort();
  return ["```mermaid", "flowchart TD", ...boxes, ...lines, "```"].join("\n");
}

/** @param {string} room */
function idOf(room) {
  return room.replaceAll(/[^a-z]/g, "_");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const page = join(root, "docs/architecture.md");
  writeFileSync(page, withDiagrams(readFileSync(page, "utf8"), readSourceTree()));
}
