/**
 * One markdown page as HTML, with what the layout and the search need of it.
 * In: text, path from the repository's root, a resolver of links. Out: body, title, outline, sections.
 */
import { Marked } from "marked";
import { anchorMaker } from "./anchors.mjs";
import { graphList } from "./graph-list.mjs";
import { highlight } from "./highlight.mjs";
import { escapeHtml, textOf } from "./html-text.mjs";

/**
 * @typedef {object} Heading
 * @property {number} depth
 * @property {string} anchor
 * @property {string} text
 *
 * @typedef {object} RenderedPage
 * @property {string} title
 * @property {string} body
 * @property {readonly Heading[]} outline
 * @property {readonly { anchor: string, heading: string, text: string }[]} sections What the search finds.
 *
 * @typedef {object} Links
 * @property {(href: string) => { href: string, text?: string } | undefined} link undefined: a file that the site does not hold.
 * @property {(href: string) => { src: string, width: number, height: number }} image
 */

/**
 * @param {string} text
 * @param {Links} links
 * @returns {RenderedPage}
 */
export function renderPage(text, links) {
  const anchorOf = anchorMaker();
  /** @type {Heading[]} */
  const outline = [];
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens);
        const heading = { depth, anchor: anchorOf(textOf(html)), text: textOf(html) };
        outline.push(heading);
        const link = `<a class="anchor" href="#${heading.anchor}" aria-label="Link to: ${escapeHtml(heading.text)}">#</a>`;
        return `<h${depth} id="${heading.anchor}">${html}${depth === 1 ? "" : link}</h${depth}>\n`;
      },
      code({ text: code, lang = "" }) {
        const [name = ""] = lang.split(" ");
        if (name === "mermaid") return graphList(code);
        // Wide code scrolls: it must be reachable by keyboard.
        return `<pre tabindex="0" data-language="${escapeHtml(name)}"><code>${highlight(code, name)}</code></pre>\n`;
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens);
        const target = links.link(href);
        if (target === undefined)
          return `<span class="file" title="In the repository: ${escapeHtml(href)}">${inner}</span>`;
        // An index of files reads better by their titles.
        const shown =
          /^[\w/-]+\.md$/.test(textOf(inner)) && target.text !== undefined ? escapeHtml(target.text) : inner;
        return `<a href="${escapeHtml(target.href)}">${shown}</a>`;
      },
      image({ href, text: alt }) {
        const { src, width, height } = links.image(href);
        return `<img src="${escapeHtml(src)}" alt="${escapeHtml(alt)}" width="${width}" height="${height}" loading="lazy">`;
      },
      html({ text: html }) {
        // Comments mark generated parts and blocks for the tests. Other HTML has no place in docs/.
        if (/^\s*<!--[\s\S]*-->\s*$/.test(html)) return "";
        throw new Error(`expected markdown, got HTML: ${html.slice(0, 80)}`);
      },
    },
  });
  const body = /** @type {string} */ (marked.parse(text)).replaceAll(
    /<table>[\s\S]*?<\/table>/g,
    // A head without text heads nothing.
    (table) => `<div class="table" tabindex="0">${table.replaceAll(/<th>\s*<\/th>/g, "<td></td>")}</div>`,
  );
  return { title: outline[0]?.text ?? "", body, outline, sections: sectionsOf(body) };
}

/** @param {string} body */
function sectionsOf(body) {
  return body
    .split(/(?=<h[1-6] id=")/)
    .filter((part) => part.startsWith("<h"))
    .map((part) => {
      const [, anchor = "", heading = ""] = /^<h\d id="([^"]*)">([\s\S]*?)<\/h\d>/.exec(part) ?? [];
      const rest = part.slice(part.indexOf("</h") + 5);
      return { anchor, heading: textOf(heading.replace(/<a class="anchor".*$/, "")), text: textOf(rest) };
    });
}
