/** The dashboard's files as the service hands them out: which paths, which headers, and how much a first visit loads. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import Fastify from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { registerDashboard } from "../../packages/server/src/administration/administration.js";
import { consoleFolder } from "../../packages/server/src/own-package.js";
import { type RunningService, startTestService } from "../service/running-service.js";

let service: RunningService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const get = (path: string, init: RequestInit = {}) => fetch(`${service.http}${path}`, { redirect: "manual", ...init });

/** What a browser loads before it shows anything: the page's scripts, and what those import at once. */
function firstLoad(): string[] {
  const assets = join(consoleFolder, "assets");
  const page = readFileSync(join(assets, "..", "index.html"), "utf8");
  const wanted = [...page.matchAll(/\/assets\/([\w.-]+\.js)/g)].map(([, name]) => name!);
  const found = new Set<string>();
  while (wanted.length > 0) {
    const name = wanted.pop()!;
    if (found.has(name)) continue;
    found.add(name);
    const text = readFileSync(join(assets, name), "utf8");
    for (const [, imported] of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)) wanted.push(imported!);
  }
  return [...found].map((name) => join(assets, name));
}

test("a first visit loads at most 200 KB of compressed JavaScript, and so do all pages together", () => {
  const size = (files: readonly string[]) =>
    files.reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0) / 1_000;
  const first = firstLoad();
  expect(first.length).toBeGreaterThan(0);
  expect(size(first)).toBeLessThanOrEqual(200);
  const assets = join(consoleFolder, "assets");
  const all = readdirSync(assets).filter((name) => name.endsWith(".js"));
  expect(size(all.map((name) => join(assets, name)))).toBeLessThanOrEqual(200);
});

test("nothing in the files points to another host", () => {
  const folder = consoleFolder;
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.(html|css|svg)$/.test(name),
  );
  for (const name of files) {
    const text = readFileSync(join(folder, name), "utf8").replaceAll("http://www.w3.org/2000/svg", "");
    expect(text, name).not.toMatch(/https?:|url\(\s*["']?\/\//);
  }
});

test.each([
  "/",
  "/rules",
  "/rules/some-rule",
  "/new-rule",
  "/wall",
  "/keys",
  "/top-keys",
  "/spend",
  "/load",
  "/alerts",
  "/store",
  "/regions",
  "/audit",
  "/tokens",
  "/history",
])("%s is a page of the dashboard, under a policy without inline script or style", async (path) => {
  const answer = await get(path);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(answer.headers.get("cache-control")).toBe("no-cache");
  const policy = answer.headers.get("content-security-policy")!;
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|data:|https?:|\*/);
  expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
  expect(await answer.text()).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=|style=/);
});

test.each([
  "/v1/nothing",
  "/admin/v1/nothing",
  "/admin",
  "/docs/nothing",
  "/metrics/x",
  "/rulesets",
  "/assets/nothing.js",
  "/..%2f..%2fpackage.json",
  "/assets/..%2findex.html",
])("%s is not a page", async (path) => {
  const answer = await get(path);
  expect([401, 404]).toContain(answer.status);
  expect(answer.headers.get("content-type")).not.toContain("text/html");
});

test.each(["/rulesets", "/rules-old/x?y=1"])("a browser that opens %s gets 404 and the console", async (path) => {
  const asked = { headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" } };
  const answer = await get(path, asked);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
  expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(await answer.text()).toBe(await (await get("/")).text());
  const etag = answer.headers.get("etag")!;
  expect((await get(path, { headers: { ...asked.headers, "if-none-match": etag } })).status).toBe(404);
  expect((await get(path, { ...asked, method: "POST" })).status).toBe(404);
});

test.each(["/v1/nothing", "/v1/check", "/admin/v1/nothing", "/docs/nothing", "/assets/nothing.js"])(
  "%s is of programs: a browser gets no page either",
  async (path) => {
    const answer = await get(path, { headers: { accept: "text/html" } });
    expect([401, 404, 405]).toContain(answer.status);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  },
);

test("only GET and HEAD are answered with a page", async () => {
  expect((await get("/rules", { method: "HEAD" })).status).toBe(200);
  for (const method of ["POST", "PUT", "DELETE"]) expect((await get("/rules", { method })).status).toBe(405);
});

test("assets are kept for good, compressed for those who take it, and not sent twice", async () => {
  const [, path] = (await (await get("/")).text()).match(/src="(\/assets\/[^"]+\.js)"/)!;
  const plain = await get(path!, { headers: { "accept-encoding": "identity" } });
  const zipped = await get(path!, { headers: { "accept-encoding": "gzip, br" } });
  expect(plain.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(plain.headers.get("content-encoding")).toBeNull();
  expect(zipped.headers.get("content-encoding")).toBe("gzip");
  expect(await zipped.text()).toBe(await plain.text());
  const again = await get(path!, { headers: { "if-none-match": plain.headers.get("etag")! } });
  expect(again.status).toBe(304);
});

test("without the build the service starts, says so once, and answers with a hint", async () => {
  const said: string[] = [];
  const app = Fastify();
  registerDashboard(app, { folder: join(consoleFolder, "missing"), log: { info: (message) => said.push(message) } });
  const answer = await app.inject("/rules");
  expect([answer.statusCode, said.length]).toEqual([503, 1]);
  expect(answer.body).toContain("npm run build");
  await app.close();
});
