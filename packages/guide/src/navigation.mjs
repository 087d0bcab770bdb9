/**
 * The order of the pages, from the index that people read in the repository: docs/README.md.
 * In: its text. Out: its sections, each with the pages that it links to, in order. A page belongs to the first section that names it. Pure.
 *
 * @typedef {object} Section
 * @property {string} title
 * @property {readonly string[]} pages Paths from docs/, such as `recipes/login.md`.
 */

/**
 * @param {string} index
 * @returns {Section[]}
 */
export function readNavigation(index) {
  /** @type {Set<string>} */
  const seen = new Set();
  return index
    .split(/^##+ /m)
    .slice(1)
    .map((part) => {
      const pages = Array.from(part.matchAll(/\]\(([\w./-]+\.md)\)/g), ([, page]) => /** @type {string} */ (page))
        .filter((page) => !page.startsWith("../") && !seen.has(page))
        .filter((page, at, all) => all.indexOf(page) === at);
      for (const page of pages) seen.add(page);
      return { title: /** @type {string} */ (part.split("\n")[0]).trim(), pages };
    })
    .filter(({ pages }) => pages.length > 0);
}
