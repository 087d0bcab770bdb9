/**
 * Composes the Redis scripts from the Lua files into src/store/redis/lua/scripts.generated.ts (committed; a test holds it equal).
 * A script is: prelude, then one body per algorithm and what reads records where it needs them, then its own file; plain ones are decide-plain.lua around one algorithm. Comments and indentation stay in the sources.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** @param {string} path */
const source = (path) =>
  readFileSync(fileURLToPath(new URL(`../src/store/redis/lua/${path}`, import.meta.url)), "utf8");

/** Must agree with `storedAs` in keys.ts; scripts.test.ts compares them. */
const letters = {
  "token-bucket": "b",
  gcra: "g",
  "fixed-window": "f",
  "sliding-counter": "s",
  "rolling-window": "z",
  "rolling-window-packed": "p",
  concurrency: "c",
};

/** The letters of stored forms with a plain file, and whose it is. */
const plainFiles = { b: "token-bucket", g: "token-bucket", p: "rolling-window-packed" };

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
 * An algorithm's body; `include('stem')` stands for another's.
 * @param {string} stem
 * @param {(lua: string) => string} [without] Takes parts out of the source.
 * @returns {string}
 */
function body(stem, without = (lua) => lua) {
  const lua = stripped(without(source(`${stem}.lua`)));
  const included = /^include\('([a-z-]+)'\)$/.exec(lua)?.[1];
  return included === undefined ? lua : body(included, without);
}

/** Only the branch that is asked for makes its functions: making every algorithm's on each call would cost more than deciding. */
function dispatch() {
  const branches = Object.entries(letters).map(([stem, letter]) => `if letter == '${letter}' then\n${body(stem)}\nend`);
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
 * decide-plain.lua around an algorithm's plain file.
 * @param {string} stem
 */
function plain(stem) {
  const [before = "", each = ""] = source(`${stem}-plain.lua`).split("-- for each counter\n");
  return stripped(source("decide-plain.lua"))
    .replace("include('before the loop')", () => stripped(before))
    .replace("include('for each counter')", () => stripped(each));
}

export function composeScripts() {
  const prelude = stripped(source("prelude.lua"));
  const algorithms = dispatch();
  /** @type {Record<string, string>} */
  const scripts = {};
  const idRecord = stripped(source("id-record.lua"));
  const parts = {
    lease: [],
    instances: [],
    place: [],
    record: [idRecord],
    decide: [algorithms, idRecord],
    refund: [algorithms, idRecord],
    "give-back": [algorithms],
    inspect: [algorithms],
  };
  for (const [name, between] of Object.entries(parts)) {
    scripts[name] = [prelude, ...between, stripped(source(`${name}.lua`))].join("\n");
  }
  for (const [stem, letter] of Object.entries(letters)) {
    // The body's functions become the script's own: its closing `return` is dropped, and what only giving back needs.
    const functions = body(stem, (lua) =>
      lua.replace(/^local function (refund|give_back|first_after|write_rest|take_from_debt)\([\s\S]*?^end$/gm, ""),
    ).replace(/\nreturn \{[^\n]*\}$/, "");
    scripts[`single-${letter}`] = `${prelude}\n${functions}\n${stripped(source("decide-single.lua"))}`;
  }
  for (const [letter, stem] of Object.entries(plainFiles)) scripts[`plain-${letter}`] = plain(stem);
  const entries = Object.entries(scripts).map(([name, lua]) => `  ${JSON.stringify(name)}: ${JSON.stringify(lua)},\n`);
  return `// Composed by scripts/compose-scripts.mjs from the Lua files; do not edit.\nexport const scriptSources = {\n${entries.join("")}} as const;\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = fileURLToPath(new URL("../src/store/redis/lua/scripts.generated.ts", import.meta.url));
  const composed = composeScripts();
  let current = "";
  try {
    current = readFileSync(target, "utf8");
  } catch {
    // Not composed yet.
  }
  if (current !== composed) writeFileSync(target, composed);
}
