/**
 * Code as HTML with classes, at build time: the browser loads no highlighter.
 * In: code and the language of its fence. Out: HTML. A language that is not here is shown plain.
 */
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import lua from "highlight.js/lib/languages/lua";
import nginx from "highlight.js/lib/languages/nginx";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import typescript from "highlight.js/lib/languages/typescript";
import yaml from "highlight.js/lib/languages/yaml";
import { escapeHtml } from "./html-text.mjs";

const languages = { bash, go, ini, java, javascript, json, lua, nginx, php, python, typescript, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

/** Names of fences and of file endings that differ from the language's. */
/** @type {Readonly<Record<string, string>>} */
const aliases = {
  sh: "bash",
  js: "javascript",
  mjs: "javascript",
  cjs: "javascript",
  ts: "typescript",
  yml: "yaml",
  conf: "nginx",
  py: "python",
};

/**
 * @param {string} code
 * @param {string} name
 */
export function highlight(code, name) {
  const language = aliases[name] ?? name;
  if (!(language in languages)) return escapeHtml(code);
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}
