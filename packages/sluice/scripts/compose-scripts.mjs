/**
 * Composes the Redis scripts from src/store/redis/lua into scripts.generated.ts beside them (committed; a test holds it equal).
 * `include('x')` in a Lua file stands for x.lua; `include('algorithms')` for every algorithm's body, chosen by its letter;
 * `include('algorithm')` in decide-single.lua for one algorithm's functions. decide-plain.lua is composed around an algorithm's plain
 * file. cross-slot.lua opens what runs over several slots of a node. Comments and indentation stay in the sources.
 * A text that several scripts include is written once, as a constant, and the scripts are put together when the module is loaded: written
 * out, they would be three times as long, and every start reads them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = new URL("../src/store/redis/lua/", import.meta.url);

/** @param {string} stem */
const source = (stem) => readFileSync(new URL(`${stem}.lua`, folder), "utf8");

/** Must agree with `storedAs` in keys.ts; scripts.test.ts compares them. */
const letters = {
  "token-bucket": "b",
  gcra: "g",
  "fixed-window": "f",
  "sliding-counter": "s",
  "rolling-window": "z",
  "rolling-window-packed": "p",
  concurrency: "c",
  pool: "u",
};

/** The scripts that are one file with what it includes. */
const wholeScripts = [
  "lease",
  "instances",
  "utilisation",
  "freed",
  "limits",
  "place",
  "record",
  "refund",
  "give-back",
  "reset",
  "inspect",
  "block",
  "settle",
  "learn",
  "fetch-home",
  "held",
];

/** The letters of stored forms with a plain file, and whose it is. */
const plainFiles = { b: "token-bucket", g: "token-bucket", f: "fixed-window", p: "rolling-window-packed" };

/** @param {string} lua */
function stripped(lua) {
  return lua
    .replace(/--\[\[[\s\S]*?\]\]/g, "")
    .split("\n")
    .map((line) => line.replace(/(^|\s)--\s.*$/, "").trim())
    .filter((line) => line !== "")
    .join("\n");
}

/**
 * The texts that scripts share, by the name of their include; each stands behind those that it includes itself.
 * @type {Map<string, string>}
 */
const shared = new Map();
const MARK = "\u0001";

/**
 * A text with its includes in place; those that mean the same in every script as marks, which `spelled` makes constants of.
 * @param {string} lua
 * @param {Readonly<Record<string, string>>} [own] What the includes of this script alone stand for.
 * @returns {string}
 */
function expanded(lua, own = {}) {
  return stripped(lua).replace(/^include\('([a-z -]+)'\)$/gm, (_, name) => {
    if (own[name] !== undefined) return own[name];
    const text = name === "algorithms" ? dispatch() : expanded(source(name), own);
    const isOwn = name !== "algorithms" && text !== expanded(source(name));
    if (isOwn) return text;
    if (!shared.has(name)) shared.set(name, text);
    return `${MARK}${name}${MARK}`;
  });
}

/** @param {string} include */
const constantOf = (include) => `${include.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase())}Lua`;

/**
 * An expression of a text with marks.
 * @param {string} text
 */
function spelled(text) {
  const parts = text.split(MARK).map((part, i) => (i % 2 === 0 ? part && JSON.stringify(part) : constantOf(part)));
  return parts.filter((part) => part !== "").join(" + ");
}

/** Only the branch that is asked for makes its functions: making every algorithm's on each call would cost more than deciding. */
function dispatch() {
  const branches = Object.entries(letters).map(
    ([stem, letter]) => `if letter == '${letter}' then\n${expanded(source(stem))}\nend`,
  );
  return `local made = {}
local function make(letter)
${branches.join("\n")}
end
local function algorithm(letter)
made[letter] = made[letter] or make(letter)
return made[letter]
end`;
}

/**
 * A body's functions as a script's own: without its closing `return`, and without what only giving back needs.
 * @param {string} stem
 * @returns {string}
 */
function functionsOf(stem) {
  const included = /^include\('([a-z-]+)'\)$/.exec(stripped(source(stem)))?.[1];
  if (included !== undefined) return functionsOf(included);
  const lean = source(stem).replace(
    /^local function (refund|give_back|first_after|write_rest|take_from_debt|lasts_until)\([\s\S]*?^end$/gm,
    "",
  );
  return expanded(lean).replace(/\nreturn \{[^\n]*\}$/, "");
}

/**
 * decide-plain.lua around an algorithm's plain file.
 * @param {string} stem
 */
function plain(stem) {
  const [before = "", each = ""] = source(`${stem}-plain`).split("-- for each counter\n");
  return expanded(source("decide-plain"), { "before the loop": expanded(before), "for each counter": expanded(each) });
}

/** The places in decide.lua that fetch.lua and turns.lua fill. */
const emptyPlaces = {
  "held units": "",
  "term of a policy": "",
  "fetch of a check": "",
  settlements: "",
  "grants of a check": "",
  "writes of grants": "",
  "end of a request": "",
};

/** @param {readonly string[]} stems */
function filledPlaces(stems) {
  /** @type {Record<string, string>} */
  const filled = { ...emptyPlaces };
  for (const stem of stems) {
    const parts = source(stem)
      .split(/^-- ([a-z ]+)\n/m)
      .slice(1);
    for (let i = 0; i < parts.length; i += 2) filled[parts[i] ?? ""] += `${expanded(parts[i + 1] ?? "")}\n`;
  }
  return filled;
}

export function composeScripts() {
  /** @type {Record<string, string>} */
  const scripts = {};
  for (const name of wholeScripts) scripts[name] = expanded(source(name));
  scripts.decide = expanded(source("decide"), emptyPlaces);
  scripts.turns = expanded(source("decide"), filledPlaces(["turns"]));
  scripts.fetch = expanded(source("decide"), filledPlaces(["fetch", "turns"]));
  for (const [stem, letter] of Object.entries(letters)) {
    scripts[`single-${letter}`] = expanded(source("decide-single"), { algorithm: functionsOf(stem) });
  }
  for (const [letter, stem] of Object.entries(plainFiles)) scripts[`plain-${letter}`] = plain(stem);
  const constants = [...shared].map(([name, lua]) => `const ${constantOf(name)} = ${spelled(lua)};\n`);
  const entries = Object.entries(scripts).map(([name, lua]) => `  ${JSON.stringify(name)}: ${spelled(lua)},\n`);
  const opening = JSON.stringify(`#!lua flags=allow-cross-slot-keys\n${stripped(source("cross-slot"))}\n`);
  return `// Composed by scripts/compose-scripts.mjs from the Lua files; do not edit.\n${constants.join("")}\nexport const scriptSources = {\n${entries.join("")}};\n\nexport const crossSlotOpening = ${opening};\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = new URL("scripts.generated.ts", folder);
  const composed = composeScripts();
  let current = "";
  try {
    current = readFileSync(target, "utf8");
  } catch {
    // Not composed yet.
  }
  if (current !== composed) writeFileSync(target, composed);
}
