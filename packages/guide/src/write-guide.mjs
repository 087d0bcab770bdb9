/**
 * Writes the documentation site: a page for each file of docs/, a listing for each file of examples/, the search's texts, script and style.
 * In: the folder to write into (an empty one), as the only argument. Out: files; on a mistake in docs/, an error that names the page.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { thirdPartyNotices } from "../../../scripts/third-party-notices.mjs";
import { highlight } from "./highlight.mjs";
import { escapeHtml } from "./html-text.mjs";
import { layout } from "./layout.mjs";
import { readNavigation } from "./navigation.mjs";
import { renderPage } from "./render-page.mjs";
import { byFolder, listingUrlOf, siteLinks, urlOf } from "./site-links.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..", "..");
const docs = join(root, "docs");
const into = process.argv[2];
if (into === undefined) throw new Error("expected the folder to write into");

/** @param {string} folder @param {RegExp} wanted */
function filesIn(folder, wanted) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => wanted.test(file))
    .sort();
}

/** @param {string} name @param {string | Buffer} content */
function write(name, content) {
  const file = join(/** @type {string} */ (into), name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return name;
}

/** Under a name that changes with the content: browsers keep it for good. @param {string} name @param {string | Buffer} content */
function writeAsset(name, content) {
  const hash = createHash("sha256").update(content).digest("base64url").slice(0, 8);
  return write(`assets/${name.replace(/\.(\w+)$/, `-${hash}.$1`)}`, content);
}

async function bundleScript() {
  const bundled = await rolldown({ input: join(here, "client", "guide.ts"), platform: "browser", logLevel: "warn" });
  const { output } = await bundled.generate({ format: "esm", minify: true });
  await bundled.close();
  write("THIRD-PARTY-NOTICES.txt", thirdPartyNotices(output[0].moduleIds));
  return output[0].code;
}

/** @param {readonly unknown[]} found */
async function writeAssets(found) {
  const styles = join(here, "..", "..", "dashboard", "src", "styles");
  const style =
    readFileSync(join(styles, "tokens.css"), "utf8") + readFileSync(join(here, "client", "guide.css"), "utf8");
  return {
    script: writeAsset("guide.js", await bundleScript()),
    theme: writeAsset("theme.js", readFileSync(join(here, "client", "theme.js"))),
    style: writeAsset("guide.css", style),
    mark: writeAsset("mark.svg", readFileSync(join(styles, "mark.svg"))),
    search: writeAsset("search.json", JSON.stringify(found)),
  };
}

/** @param {string} text @param {string} page */
function titleOf(text, page) {
  const title = /^# (.+)$/m.exec(text)?.[1];
  if (title === undefined) throw new Error(`docs/${page}: expected a heading "# …"`);
  return title.replaceAll("`", "");
}

const examples = filesIn(join(root, "examples"), /\.\w+$/).map((file) => `examples/${file}`);
const texts = new Map(filesIn(docs, /\.md$/).map((page) => [page, readFileSync(join(docs, page), "utf8")]));
const titles = new Map([...texts].map(([page, text]) => [page, titleOf(text, page)]));
/** Name on the site -> file. @type {Map<string, string>} */
const images = new Map();
const linksOf = siteLinks({ docs, titles, examples, images });

const pages = [...texts].map(([page, text]) => {
  try {
    return { url: urlOf(page), ...renderPage(text, linksOf(page)) };
  } catch (error) {
    throw new Error(`docs/${page}: ${/** @type {Error} */ (error).message}`);
  }
});

/** Lines of an example that are shown: a log of half a megabyte is an example too, and every installation carries the site. */
const MOST_LISTED = 400;

function listings() {
  const index = [...byFolder(examples)].map(([folder, files]) => {
    const items = files.map(
      (file) => `<li><a href="../${listingUrlOf(file)}"><code>${escapeHtml(file)}</code></a></li>`,
    );
    return `<h2 id="${folder.replaceAll("/", "-")}">${escapeHtml(folder)}</h2>\n<ul>${items.join("")}</ul>\n`;
  });
  const about = "<p>Programs and configurations to run, as they lie in the repository. Tests run them.</p>";
  const listed = examples.map((file) => {
    const lines = readFileSync(join(root, file), "utf8").split("\n");
    const html = highlight(lines.slice(0, MOST_LISTED).join("\n"), file.split(".").at(-1) ?? "");
    const left = lines.length - MOST_LISTED;
    const rest = left > 0 ? `<p>… and ${left.toLocaleString("en")} more lines, in the repository.</p>\n` : "";
    const body = `<h1>${escapeHtml(file)}</h1>\n<pre tabindex="0"><code>${html}</code></pre>\n${rest}`;
    return { url: listingUrlOf(file), title: file, body, outline: [] };
  });
  return [
    {
      url: "examples/index.html",
      title: "Examples",
      body: `<h1>Examples</h1>\n${about}\n${index.join("")}`,
      outline: [],
    },
    ...listed,
  ];
}

const found = pages.flatMap(({ url, title, sections }) =>
  sections.map(({ anchor, heading, text }) => [`${url}#${anchor}`, title, heading, text]),
);
const sections = readNavigation(/** @type {string} */ (texts.get("README.md"))).map(({ title, pages: named }) => ({
  title,
  entries: named.map((page) => ({ url: urlOf(page), title: titles.get(page) ?? page })),
}));
const { version } = JSON.parse(readFileSync(join(root, "packages", "server", "package.json"), "utf8"));
const site = { sections, assets: await writeAssets(found), version };
for (const page of [...pages, ...listings()]) write(page.url, layout(page, site));
for (const [image, file] of images) write(image, readFileSync(file));
