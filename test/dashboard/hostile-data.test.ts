/** What clients and editors choose freely, in a real Chromium: keys, ids and texts that are long, unseen, or look like addresses. */
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { ADMIN, admin, check, type OpenConsole, open, openConsole, signIn } from "./console.js";

const LONG_ID = "a".repeat(64);
const AGENT = `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36 Edg/148`;
const values = ["%2e%2e%2fetc", "a/b?c=d&e#f", "  two  spaces", "日本語 🔥", "x=y", "\u202etxt.exe", AGENT];
const longValues = [`${"z".repeat(4_000)}1`, `${"z".repeat(4_000)}2`];

/** Two rules, one of them in shadow, and three requests of each client. */
async function sendHostile(at: string): Promise<void> {
  const rule = { match: { path: "/h" }, key: ["agent"], algorithm: "fixed-window", limit: 1, window: "1h" };
  const turned = "Limits \u202eeverybody";
  await admin(at, "PUT", `/rules/hostile?message=${encodeURIComponent(`why ${turned}`)}`, {
    ...rule,
    description: turned,
  });
  await admin(at, "PUT", `/rules/${LONG_ID}`, { ...rule, mode: "shadow", description: "d".repeat(500) });
  for (const agent of [...values, ...longValues]) for (let i = 0; i < 3; i++) await check(at, { agent, path: "/h" });
}

describe.skipIf(whyMissing("chromium"))("in a browser", () => {
  let { browser, page, person, service } = {} as OpenConsole;
  beforeAll(async () => {
    const opened = await openConsole({ path: "/top-keys?by=refusals", prepare: sendHostile });
    ({ browser, page, person, service } = opened);
    return opened.close;
  });

  test("a key leads to its own page, whatever its value is made of", async () => {
    // The tables are written every few seconds.
    await expect.poll(() => page.locator("tbody tr").count(), { timeout: 20_000 }).toBe(values.length + 2);
    for (const value of values) {
      await page.goto("/top-keys?by=refusals");
      const shown = value.replace("\u202e", "\\u202e");
      const link = page.locator("a.key-link").filter({ has: page.locator(".attribute", { hasText: shown }) });
      // A row that was never in sight has no inner text yet.
      await link.scrollIntoViewIfNeeded();
      // As it is, not with its spaces run together.
      expect(await link.locator(".attribute").innerText()).toBe(`agent=${shown}`);
      await link.click();
      await page.getByText("Last refusals").waitFor();
      expect(await page.getByLabel("Attribute 1, value").inputValue()).toBe(value);
      const refusals = page.locator("section.panel", { hasText: "Last refusals" });
      await expect.poll(() => refusals.locator("tbody tr").count(), { timeout: 60_000 }).toBeGreaterThan(0);
      await page.getByRole("img", { name: /^Checks of this key/ }).waitFor();
      expect(await page.locator("main").innerText()).not.toContain("\u202e");
    }
  });

  test("two clients whose values are too long to be kept are two rows, and neither leads to a third", async () => {
    await page.goto("/top-keys?by=refusals");
    const long = page.locator("tbody tr", { hasText: "zzzz" });
    await expect.poll(() => long.count()).toBe(2);
    expect(await long.locator("a.key-link").count()).toBe(0);
    expect(await long.first().locator(".attribute").innerText()).toBe(`agent=${"z".repeat(256)}…`);
    // Whoever has the whole value finds the key.
    await page.goto(`/keys?agent=${longValues[0]}`);
    await page.getByRole("img", { name: /^Checks of this key/ }).waitFor();
  });

  test("an id of 64 letters and text without a space leave every page as wide as the screen", async () => {
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 860 });
      for (const path of [
        "/",
        "/rules",
        `/rules/${LONG_ID}`,
        "/top-keys",
        `/keys?agent=x&path=/h`,
        "/history",
        "/audit",
      ]) {
        await page.goto(path);
        await page
          .getByText(LONG_ID)
          .or(page.getByRole("heading", { level: 1 }))
          .first()
          .waitFor();
        expect(await page.evaluate("document.documentElement.scrollWidth"), `${path} ${width}`).toBeLessThanOrEqual(
          width,
        );
      }
    }
    await page.setViewportSize({ width: 1280, height: 860 });
  });

  test("text that would turn its line around is spelled out: description, reason, difference, audit", async () => {
    for (const path of ["/rules", "/rules/hostile", "/history", "/audit"]) {
      await page.goto(path);
      await page.getByText("Limits \\u202eeverybody").first().waitFor();
      expect(await page.locator("main").innerText(), path).not.toContain("\u202e");
    }
    await page.getByLabel("Author").fill("nobody");
    await page.getByText("No entry fits the filter.").waitFor();
  });

  test("an address that cannot be decoded is answered by the console too", async () => {
    await page.goto("/rules/%");
    await page.getByText("There is no rule of this id.").waitFor();
    await page.goto("/%E0%A4%A");
    await page.getByText("There is no page of this name.").waitFor();
    const answer = await fetch(`${service.http}//elsewhere.example/%`, {
      headers: { accept: "text/html" },
      redirect: "manual",
    });
    expect([answer.status, answer.headers.get("location")]).toEqual([302, "/elsewhere.example/%25"]);
    const program = await fetch(`${service.http}/v1/%`);
    expect([program.status, ((await program.json()) as { code: string }).code]).toEqual([404, "not-found"]);
    expect(person.complaints).toEqual([]);
  });

  test("a page that cannot be drawn says so in its place, and the others stay", async () => {
    await using visitor = await open(browser, { at: service.http, token: ADMIN });
    await visitor.page.route("**/admin/v1/store", (route) => route.fulfill({ json: { nodes: "none" } }));
    await visitor.page.getByRole("link", { name: "Store", exact: true }).click();
    await visitor.page.getByText("This page could not be drawn.").waitFor();
    await visitor.page.getByRole("link", { name: "History", exact: true }).click();
    await visitor.page.getByRole("heading", { name: "History" }).waitFor();
    expect(visitor.complaints.length).toBeGreaterThan(0);
  });

  test("a browser whose language is no language (en-US@posix, under LANG=C) shows the console and its charts", async () => {
    const context = await browser.newContext({ baseURL: service.http });
    try {
      await context.addInitScript('Object.defineProperty(navigator, "language", { get: () => "en-US@posix" })');
      const strange = await context.newPage();
      const failures: string[] = [];
      strange.on("pageerror", (error) => failures.push(String(error)));
      await strange.goto("/");
      await signIn(strange, ADMIN);
      await strange.getByRole("img", { name: /^Decisions a second/ }).waitFor();
      expect(await strange.evaluate("navigator.language")).toBe("en-US@posix");
      expect(failures).toEqual([]);
    } finally {
      await context.close();
    }
  });
});
