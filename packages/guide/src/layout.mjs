/**
 * The frame around a page's body: head, search, pages, outline, neighbours. No inline script or style: the service's policy forbids both.
 * In: the page and the site. Out: a document. Links are relative, so that the site works under any path.
 */
import { escapeHtml } from "./html-text.mjs";

/**
 * @typedef {object} Entry A page of the navigation.
 * @property {string} url From the site's root.
 * @property {string} title
 *
 * @typedef {object} Site
 * @property {readonly { title: string, entries: readonly Entry[] }[]} sections
 * @property {{ script: string, theme: string, style: string, mark: string, search: string }} assets
 * @property {string} version
 *
 * @typedef {object} Framed
 * @property {string} url
 * @property {string} title
 * @property {string} body
 * @property {readonly import("./render-page.mjs").Heading[]} outline
 */

/**
 * @param {Framed} page
 * @param {Site} site
 */
export function layout(page, site) {
  const up = "../".repeat(page.url.split("/").length - 1);
  const at = (/** @type {string} */ url) => `${up}${url}` || "./";
  const { assets } = site;
  const title = page.url === "index.html" ? "Sluice: the guide" : `${page.title} · Sluice`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${at(assets.mark)}" type="image/svg+xml">
<link rel="stylesheet" href="${at(assets.style)}">
<script src="${at(assets.theme)}"></script>
<script type="module" src="${at(assets.script)}"></script>
</head>
<body data-root="${up || "./"}" data-search="${at(assets.search)}">
<a class="skip" href="#content">Skip to the text</a>
<header class="top">
<a class="brand" href="${at("index.html")}"><img src="${at(assets.mark)}" alt="" width="26" height="26">Sluice</a>
<form role="search" class="search" hidden>
<input type="search" id="search" placeholder="Search" aria-label="Search the guide" autocomplete="off" role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list">
<div id="found" role="listbox" aria-label="Found" hidden></div>
<p class="visually-hidden" role="status"></p>
</form>
<a class="menu" href="#pages">Pages</a>
<button type="button" class="theme" hidden>Theme</button>
</header>
<div class="frame">
${pagesNav(page, site, at)}
<main id="content" tabindex="-1">
<article>
${page.body}</article>
${neighbours(page, site, at)}
<footer><p>Sluice ${escapeHtml(site.version)}. Tests run the code on these pages.</p></footer>
</main>
${outlineNav(page)}
</div>
</body>
</html>
`;
}

/**
 * @param {Framed} page
 * @param {Site} site
 * @param {(url: string) => string} at
 */
function pagesNav(page, site, at) {
  const sections = site.sections.map(({ title, entries }) => {
    const items = entries.map(({ url, title: name }) => {
      const current = url === page.url ? ' aria-current="page"' : "";
      return `<li><a href="${at(url)}"${current}>${escapeHtml(name)}</a></li>`;
    });
    // The decisions are more than all others, and read one at a time.
    const isOpen = entries.length <= 30 || entries.some(({ url }) => url === page.url);
    return `<details${isOpen ? " open" : ""}><summary>${escapeHtml(title)}</summary><ul>${items.join("\n")}</ul></details>`;
  });
  return `<nav id="pages" class="pages" aria-label="Pages">\n${sections.join("\n")}\n</nav>`;
}

/** @param {Framed} page */
function outlineNav({ outline }) {
  const shown = outline.filter(({ depth }) => depth === 2 || depth === 3);
  if (shown.length < 2) return "";
  const items = shown.map(
    ({ depth, anchor, text }) => `<li class="depth-${depth}"><a href="#${anchor}">${escapeHtml(text)}</a></li>`,
  );
  return `<nav class="outline" aria-label="On this page"><p>On this page</p><ul>${items.join("")}</ul></nav>`;
}

/**
 * @param {Framed} page
 * @param {Site} site
 * @param {(url: string) => string} at
 */
function neighbours(page, site, at) {
  const all = site.sections.flatMap(({ entries }) => entries);
  const here = all.findIndex(({ url }) => url === page.url);
  if (here === -1) return "";
  const link = (/** @type {Entry | undefined} */ entry, /** @type {string} */ word) =>
    entry === undefined
      ? "<span></span>"
      : `<a href="${at(entry.url)}"><small>${word}</small> ${escapeHtml(entry.title)}</a>`;
  return `<nav class="neighbours" aria-label="Next pages">${link(all[here - 1], "Before")}${link(all[here + 1], "Next")}</nav>`;
}
