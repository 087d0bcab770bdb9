/**
 * What each block of the documentation is held to, by its language and its mark. Every block falls under exactly one of these:
 *   run       a test runs it, and compares what it prints where the page shows that
 *   compiled  the type checker accepts it
 *   parsed    the product's own parser accepts it (rules, attributes, prices, settings), or that of the format
 *   known     every `sluice` command in it exists, with its options, and every npm script
 *   shown     text: output, diagrams, annotated examples
 *   not run   needs what no test has: a container engine, a cluster, a registry
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { parseRules } from "sluice";
import { parse } from "yaml";
import { readMapping } from "../../packages/server/src/enforcement/attributes/mapping-file.js";
import { pricesOf } from "../../packages/server/src/enforcement/proxy/usage/prices.js";
import { resolveSettings } from "../../packages/server/src/settings/settings.js";
import { makeTempFolder, removeTempFolder } from "../harness/leash.js";
import { type Block, root } from "./read-blocks.js";

export type Treatment = "run" | "compiled" | "parsed" | "known" | "shown" | "not run";

/** Pages whose every shell block is run: test/guide/tutorial.test.ts, test/guide/recipes.test.ts. */
const runPages = /^docs\/(tutorial\.md|recipes\/)/;
/** Pages with a test of their own for all that they show: test/service/languages.test.ts. */
const testedPages = /^docs\/languages(\/|\.md)/;
/** Pages whose `js` blocks test/docs.test.ts runs. */
const runScripts = /^docs\/(library|errors|from-other-limiters)\.md$/;

export function treatmentOf({ page, language, mark }: Block): Treatment {
  if (mark === "not-run") return "not run";
  if (testedPages.test(page) && language !== "" && language !== "text") return "run";
  if (language === "sh") return runPages.test(page) || mark === "run" || mark === "background" ? "run" : "known";
  if (language === "js" || language === "cjs") return runScripts.test(page) ? "run" : "compiled";
  if (language === "ts") return "compiled";
  if (language === "yaml" || language === "json") return "parsed";
  if (language === "" || language === "text" || language === "mermaid") return "shown";
  return "not run";
}

export function parseBlock({ language, code }: Block): void {
  if (language === "json") {
    // One document, or one a line.
    const documents = /^\{.*\}\n\{/.test(code) ? code.trim().split("\n") : [code];
    for (const document of documents) JSON.parse(document);
    return;
  }
  const document: unknown = parse(code);
  const fields = Array.isArray(document) ? document[0] : document;
  const has = (field: string): boolean => typeof fields === "object" && fields !== null && field in fields;
  if (has("rules") || (has("id") && has("algorithm"))) parseRules(document);
  else if (has("attributes") || has("trustedProxies")) inFile(code, readMapping);
  else if (has("models")) pricesOf(document, (text) => new Error(text));
  else if (has("grpc-port")) inFile(code, (configFile) => resolveSettings({ flags: {}, env: {}, configFile }));
}

function inFile(text: string, read: (file: string) => unknown): void {
  const folder = makeTempFolder("guide-block");
  try {
    const file = join(folder, "block.yaml");
    writeFileSync(file, text);
    read(file);
  } finally {
    removeTempFolder(folder);
  }
}

/** Mistakes in the commands of a shell block. `commands` are those of `sluice`, by name. */
export function commandMistakes({ code }: Block, commands: ReadonlyMap<string, Command>): string[] {
  const scripts = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).scripts as Record<string, string>;
  const lines = code.replaceAll("\\\n", " ").split(/\n|;|&&|\|\|?|<\(|^if (?=sluice)/m);
  return lines.flatMap((line) => {
    const plain = line
      .replace(/(^|\s)#.*$/, "")
      .replace(/(?<=\s)>.*$/, "")
      .trim();
    const script = /^npm run ([\w:-]+)/.exec(plain)?.[1];
    if (script !== undefined && scripts[script] === undefined) return [`no script ${script}: ${plain}`];
    const found = /^(?:npx )?(?:-p sluice-server )?sluice ([\w-]+)(.*)$/.exec(plain);
    return found === null
      ? []
      : sluiceMistakes(commands, found[1]!, found[2]!).map((mistake) => `${mistake}: ${plain}`);
  });
}

function sluiceMistakes(commands: ReadonlyMap<string, Command>, name: string, rest: string): string[] {
  let command = commands.get(name);
  if (command === undefined) return [`no command ${name}`];
  const words = rest.trim().split(/\s+/);
  const sub = command.commands.find((one) => one.name() === words[0]);
  if (command.commands.length > 0 && sub === undefined && !words[0]!.startsWith("-") && words[0] !== "…") {
    return [`no command ${name} ${words[0]}`];
  }
  command = sub ?? command;
  const known = command.options.flatMap(({ long, short }) => [long, short]);
  return words
    .filter((word) => /^--?[a-z]/.test(word))
    .map((word) => word.split("=")[0]!)
    .filter((word) => !known.includes(word))
    .map((word) => `no option ${word}`);
}
