/**
 * The licences of packages whose code is part of a bundle: their authors ask that each copy carries their notice.
 * In: the files that were bundled. Out: a text, one section for each package, in alphabetical order.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** @param {readonly string[]} modules paths of files; those outside of node_modules are this repository's own */
export function thirdPartyNotices(modules) {
  const folders = new Set(modules.map(packageFolder).filter((folder) => folder !== undefined));
  const sections = [...folders].map(noticeOf).sort();
  const title = "This package contains code of the packages below, each under its own licence.\n";
  return [title, ...new Set(sections)].join(`\n${"-".repeat(80)}\n\n`);
}

/** @param {string} file */
function packageFolder(file) {
  // Bundlers mark modules that they make themselves by a NUL character or a query.
  const path = file.replace(/^\0/, "").replace(/\?.*$/, "");
  return path.replaceAll("\\", "/").match(/^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0];
}

/** @param {string} folder */
function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const text = licenceFiles(folder)
    .map((file) => readFileSync(join(folder, file), "utf8").trim())
    .join("\n\n");
  return `${name} ${version} (${license})\n${text === "" ? "" : `\n${text}\n`}`;
}

/** @param {string} folder */
function licenceFiles(folder) {
  return readdirSync(folder)
    .filter((file) => /^(licen[cs]e|notice|copying)([.-].*)?$/i.test(file))
    .sort();
}
