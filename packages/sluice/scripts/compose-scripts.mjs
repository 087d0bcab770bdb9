/**
 * Composes the Redis scripts from the Lua files into src/store/scripts.generated.ts (committed; a test holds it equal).
 * A script is: prelude, then one body per algorithm, then its own file. Comments and indentation stay in the sources.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** @param {string} path */
const source = (path) => readFileSync(fileURLToPath(new URL(`../src/${path}`, import.meta.url)), "utf8");

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

/** @param {string} lua */
function stripped(lua) {
  return lua
    .replace(/--\[\[[\s\S]*?\]\]/g, "")
    .split("\n")
    .map((line) => line.replace(/(^|\s)--\s.*$/, "").trim())
    .filter((line) => line !== "")
    .join("\n");
}

export function composeScripts() {
  const bodies = Object.entries(letters)
    .map(([stem, letter]) => `bodies.${letter} = function()\n${stripped(source(`algorithms/${stem}.lua`))}\nend`)
    .join("\n");
  /** @param {string} name */
  const compose = (name, withBodies = true) =>
    [
      stripped(source("store/prelude.lua")),
      ...(withBodies ? [bodies] : []),
      stripped(source(`store/${name}.lua`)),
    ].join("\n");
  const scripts = {
    decide: compose("decide"),
    refund: compose("refund"),
    lease: compose("lease", false),
    inspect: compose("inspect"),
  };
  const entries = Object.entries(scripts).map(([name, lua]) => `  ${name}: ${JSON.stringify(lua)},\n`);
  return `// Composed by scripts/compose-scripts.mjs from the Lua files; do not edit.\nexport const scriptSources = {\n${entries.join("")}} as const;\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = fileURLToPath(new URL("../src/store/scripts.generated.ts", import.meta.url));
  const composed = composeScripts();
  let current = "";
  try {
    current = readFileSync(target, "utf8");
  } catch {
    // Not composed yet.
  }
  if (current !== composed) writeFileSync(target, composed);
}
