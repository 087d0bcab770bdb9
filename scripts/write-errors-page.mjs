/**
 * Writes the codes into docs/errors.md, from the tables of the library and the service (their `errors.ts`). The prose around them is kept.
 *
 *   npm run build && npm run docs:errors
 *
 * test/docs.test.ts fails while the page is not what this would write.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./run-command.mjs";

const BEGIN =
  "<!-- scripts/write-errors-page.mjs writes what follows, from errors.ts of the library and of the service -->";
const END = "<!-- end of what is written by the script -->";
const COLUMNS = 120;

/** @typedef {Readonly<Record<string, { status: number, meaning: string, remedy: string }>>} Kinds */
/** @typedef {{ library: Kinds, http: Kinds, administration: Kinds, proxy: Kinds }} Tables */

/** @type {readonly (readonly [keyof Tables, string])[]} */
const sections = [
  ["library", "The library, and every call of the service"],
  ["http", "Every HTTP port"],
  ["administration", "The admin API"],
  ["proxy", "The proxy"],
];

/** @param {string} page @param {Tables} tables */
export function withCodes(page, tables) {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`docs/errors.md: expected the lines ${BEGIN} and ${END}`);
  const written = sections.map(([name, title]) => `## ${title}\n\n${codesText(tables[name])}`);
  return `${page.slice(0, begin)}${BEGIN}\n\n${written.join("\n\n")}\n\n${page.slice(end)}`;
}

/** @param {Kinds} kinds */
function codesText(kinds) {
  return Object.entries(kinds)
    .map(([code, { status, meaning, remedy }]) =>
      [`### ${code}`, "", ...wrapped(`Status ${status}. ${meaning}`), "", ...wrapped(`Remedy: ${remedy}`)].join("\n"),
    )
    .join("\n\n");
}

/** @param {string} text */
function wrapped(text) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = `${lines.at(-1)} ${word}`.trimStart();
    if (line.length <= COLUMNS) lines[lines.length - 1] = line;
    else lines.push(word);
  }
  return lines;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { serviceErrors } = await import(pathToFileURL(join(root, "packages/server/dist/errors.js")).href);
  const { errorKinds } = await import(pathToFileURL(join(root, "packages/sluice/dist/esm/errors.js")).href);
  const page = join(root, "docs/errors.md");
  writeFileSync(page, withCodes(readFileSync(page, "utf8"), { library: errorKinds, ...serviceErrors }));
}
