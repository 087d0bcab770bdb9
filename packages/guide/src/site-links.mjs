/**
 * Where a link of the repository leads on the site: pages of docs/ to their HTML, files of examples/ to a listing, the rest nowhere.
 * In: the pages and the files of examples. Out: a resolver for each page, and the files that were linked to.
 */
import { readFileSync } from "node:fs";
import { dirname, posix } from "node:path";

/** `recipes/login.md` -> `recipes/login.html`; the index is the front page. @param {string} page path from docs/ */
export function urlOf(page) {
  return page === "README.md" ? "index.html" : page.replace(/\.md$/, ".html");
}

/** @param {string} file path from the root, such as `examples/nginx/nginx.conf` */
export function listingUrlOf(file) {
  return `${file}.html`;
}

/**
 * @param {{ docs: string, titles: ReadonlyMap<string, string>, examples: readonly string[], images: Map<string, string> }} site
 * @returns {(page: string) => import("./render-page.mjs").Links}
 */
export function siteLinks({ docs, titles, examples, images }) {
  return (page) => {
    const here = posix.dirname(urlOf(page));
    const toHere = (/** @type {string} */ url) => posix.relative(here, url);
    return {
      link(href) {
        if (/^[a-z]+:|^#/.test(href)) return { href };
        const [path = "", anchor] = href.split("#");
        // From docs/: a path that begins with ../ leaves it.
        const target = posix.join(posix.dirname(page), decodeURIComponent(path)).replace(/\/$/, "");
        const tail = anchor === undefined ? "" : `#${anchor}`;
        const title = titles.get(target);
        if (title !== undefined) return { href: `${toHere(urlOf(target))}${tail}`, text: title };
        const file = target.replace(/^\.\.\//, "");
        if (file === "examples") return { href: toHere("examples/index.html") };
        if (examples.includes(file)) return { href: toHere(listingUrlOf(file)) };
        if (examples.some((name) => name.startsWith(`${file}/`))) {
          return { href: `${toHere("examples/index.html")}#${file.replaceAll("/", "-")}` };
        }
        return undefined;
      },
      image(href) {
        const file = posix.join(posix.dirname(page), href);
        const image = `images/${posix.basename(file)}`;
        images.set(image, posix.join(docs, file));
        return { src: toHere(image), ...sizeOf(readFileSync(posix.join(docs, file))) };
      },
    };
  };
}

/** So that the text does not jump when an image arrives. @param {Buffer} image PNG or SVG */
function sizeOf(image) {
  const [, width, height] =
    /^<svg[^>]* viewBox="0 0 (\d+) (\d+)"/.exec(image.subarray(0, 300).toString("latin1")) ?? [];
  if (width !== undefined) return { width: Number(width), height: Number(height) };
  return { width: image.readUInt32BE(16), height: image.readUInt32BE(20) };
}

/** Groups files by folder, in their order. @param {readonly string[]} files @returns {Map<string, string[]>} */
export function byFolder(files) {
  /** @type {Map<string, string[]>} */
  const folders = new Map();
  for (const file of files) folders.set(dirname(file), [...(folders.get(dirname(file)) ?? []), file]);
  return folders;
}
