/** The documentation site: made of docs/, linked throughout, and served by the service under its policy. */
import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import Fastify from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { registerGuide } from "../../packages/server/src/administration/administration.js";
import { guideFolder } from "../../packages/server/src/own-package.js";
import { run } from "../../scripts/run-command.mjs";
import { type RunningService, startTestService } from "../service/running-service.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
let service: RunningService;
let files: string[];
let pages: ReadonlyMap<string, string>;

beforeAll(async () => {
  const { code, output } = await run({
    command: process.execPath,
    args: [join(root, "scripts/build-guide.mjs")],
    capture: true,
  });
  expect(code, output).toBe(0);
  files = readdirSync(guideFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.relative(guideFolder, posix.join(entry.parentPath, entry.name)));
  pages = new Map(
    files.filter((file) => file.endsWith(".html")).map((file) => [file, readFileSync(join(guideFolder, file), "utf8")]),
  );
  service = await startTestService();
});
afterAll(() => service?.close());

const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => file.endsWith(".md"));

const idsOf = (html: string): string[] => Array.from(html.matchAll(/\sid="([^"]+)"/g), ([, id]) => id!);
const targetsOf = (html: string): string[] =>
  Array.from(html.matchAll(/\s(?:href|src|data-search)="([^"]+)"/g), ([, target]) => target!);

test("every page of docs/ is a page of the site, and stands in its list of pages once", () => {
  const urls = docs.map((page) => (page === "README.md" ? "index.html" : page.replace(/\.md$/, ".html")));
  expect(urls.filter((url) => !pages.has(url))).toEqual([]);
  const nav = /<nav id="pages"[\s\S]*?<\/nav>/.exec(pages.get("index.html")!)![0];
  expect(targetsOf(nav).sort()).toEqual(urls.filter((url) => url !== "index.html").sort());
});

test("every link, image, script and style leads to a file of the site, and every anchor to an id", () => {
  const broken = [...pages].flatMap(([page, html]) =>
    targetsOf(html)
      .filter((target) => !/^(https?|mailto):/.test(target))
      .filter((target) => {
        const [path, anchor] = target.split("#");
        const file = path === "" ? page : posix.join(posix.dirname(page), path!);
        if (!files.includes(file)) return true;
        return anchor !== undefined && !idsOf(pages.get(file)!).includes(decodeURIComponent(anchor));
      })
      .map((target) => `${page} -> ${target}`),
  );
  expect(broken).toEqual([]);
});

test("links to other hosts lead to https, and nothing is loaded from there", () => {
  for (const [page, html] of pages) {
    expect(html, page).not.toMatch(/<(?:script|img|link)[^>]+(?:src|href)="(?:https?:)?\/\//);
  }
});

test("no page has two elements of one id, a skipped level of headings, an image without text, or inline script and style", () => {
  const mistakes = [...pages].flatMap(([page, html]) => {
    const ids = idsOf(html);
    const levels = Array.from(html.matchAll(/<h([1-6])[ >]/g), ([, level]) => Number(level));
    return [
      ...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `${page}: two of id ${id}`),
      ...(levels.filter((level) => level === 1).length === 1 ? [] : [`${page}: expected one h1`]),
      ...levels.flatMap((level, at) => (level > (levels[at - 1] ?? 0) + 1 ? [`${page}: h${level} skips a level`] : [])),
      ...Array.from(html.matchAll(/<img(?![^>]* alt=)[^>]*>/g), ([image]) => `${page}: ${image}`),
      ...Array.from(
        html.matchAll(/<script(?![^>]*\bsrc=)|<style|<[^>]+\s(?:on\w+|style)=/g),
        ([at]) => `${page}: ${at}`,
      ),
    ];
  });
  expect(mistakes).toEqual([]);
});

test("a first visit loads less than 200 KB of JavaScript, before compression", () => {
  const scripts = Array.from(pages.get("index.html")!.matchAll(/<script[^>]* src="([^"]+)"/g), ([, src]) => src!);
  expect(scripts.length).toBeGreaterThan(0);
  const bytes = scripts.map((script) => readFileSync(join(guideFolder, script)));
  expect(bytes.reduce((sum, script) => sum + script.length, 0)).toBeLessThan(200_000);
  // Loaded with the first word that is searched for.
  const texts = files.find((file) => /^assets\/search-.*\.json$/.test(file))!;
  expect(gzipSync(readFileSync(join(guideFolder, texts))).length).toBeLessThan(400_000);
});

describe("served by the service", () => {
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`${service.http}${path}`, { redirect: "manual", ...init });

  test("/docs/guide leads to the front page, which has the policy of the console", async () => {
    const moved = await get("/docs/guide");
    expect([moved.status, new URL(moved.headers.get("location")!, `${service.http}/docs/guide`).pathname]).toEqual([
      308,
      "/docs/guide/",
    ]);
    const page = await get("/docs/guide/");
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'; script-src 'self'");
    expect(page.headers.get("content-security-policy")).not.toMatch(/unsafe|data:|\*/);
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    expect(await page.text()).toBe(pages.get("index.html"));
  });

  test.each([
    ["tutorial", "/docs/guide/tutorial.html"],
    ["tutorial.md", "/docs/guide/tutorial.html"],
    ["recipes/plans-and-tenants", "/docs/guide/recipes/plans-and-tenants.html"],
  ])("a page without its .html, %s, leads to it", async (typed, page) => {
    const moved = await get(`/docs/guide/${typed}`);
    expect(moved.status).toBe(308);
    expect(new URL(moved.headers.get("location")!, moved.url).pathname).toBe(page);
    expect((await get(page)).status).toBe(200);
  });

  test("files of every kind have their type; assets are kept for good, pages are asked for again", async () => {
    const asset = (kind: string) => files.find((file) => file.startsWith("assets/") && file.endsWith(kind))!;
    const kinds = {
      ".js": "text/javascript; charset=utf-8",
      ".css": "text/css; charset=utf-8",
      ".json": "application/json",
    };
    for (const [kind, type] of Object.entries(kinds)) {
      const answer = await get(`/docs/guide/${asset(kind)}`, { headers: { "accept-encoding": "gzip" } });
      expect([answer.headers.get("content-type"), answer.headers.get("content-encoding")]).toEqual([type, "gzip"]);
      expect(answer.headers.get("cache-control")).toContain("immutable");
    }
    const image = await get("/docs/guide/images/overview-light.png", { headers: { "accept-encoding": "gzip" } });
    expect([image.headers.get("content-type"), image.headers.get("content-encoding")]).toEqual(["image/png", null]);
    const page = await get("/docs/guide/rules.html");
    expect(page.headers.get("cache-control")).toBe("no-cache");
    const again = await get("/docs/guide/rules.html", { headers: { "if-none-match": page.headers.get("etag")! } });
    expect(again.status).toBe(304);
  });

  test.each([
    "nothing.html",
    "..%2fpackage.json",
    "%2e%2e/%2e%2e/package.json",
    "assets/",
    "__proto__",
    "rules.html/x",
  ])("/docs/guide/%s is not found", async (path) => {
    const answer = await get(`/docs/guide/${path}`);
    expect(answer.status).toBe(404);
    expect(answer.headers.get("content-type")).toContain("application/problem+json");
  });

  test("the page to try the API stays where it was", async () => {
    expect(await (await get("/docs", { redirect: "follow" })).text()).toContain("swagger-ui");
  });
});

test("without the build the guide answers with a hint", async () => {
  const app = Fastify();
  registerGuide(app, { folder: join(guideFolder, "missing") });
  const answer = await app.inject("/docs/guide/");
  expect([answer.statusCode, answer.body]).toEqual([503, expect.stringContaining("npm run build")]);
  await app.close();
});
