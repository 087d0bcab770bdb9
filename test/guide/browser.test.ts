/** The documentation site in Chromium, served by the service: accessible in both themes and on a phone, searchable, within its policy. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { allFindings } from "../dashboard/axe.js";
import { open, startBrowser } from "../dashboard/console.js";
import { type RunningService, startTestService } from "../service/running-service.js";

describe.skipIf(whyMissing("chromium"))("the guide in a browser", () => {
  let browser: Browser;
  let service: RunningService;
  beforeAll(async () => {
    [browser, service] = await Promise.all([startBrowser(), startTestService()]);
  });
  afterAll(async () => {
    await Promise.all([browser?.close(), service?.close()]);
  });
  const visit = (path: string, look: { colorScheme?: "light" | "dark"; width?: number } = {}) =>
    open(browser, { at: service.http, path: `/docs/guide/${path}`, ...look });

  // One page of each kind: index, commands, tables, much code, images, lists of a graph, a listing.
  test.each([
    ["", "light", 1280],
    ["tutorial.html", "dark", 1280],
    ["rules.html", "dark", 390],
    ["recipes/login.html", "light", 390],
    ["dashboard.html", "light", 1280],
    ["architecture.html", "dark", 1280],
    ["examples/recipes/login.mjs.html", "light", 1280],
  ] as const)(
    "axe finds nothing on /%s, %s, %i px, and nothing is wider than the page",
    async (path, colorScheme, width) => {
      await using visitor = await visit(path, { colorScheme, width });
      expect(await allFindings(visitor.page)).toEqual([]);
      expect(await visitor.page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
      expect(visitor.complaints).toEqual([]);
    },
  );

  test("the search finds a section by its words, and leads there by keyboard alone", async () => {
    await using visitor = await visit("recipes/login.html");
    const { page } = visitor;
    await page.keyboard.press("/");
    await page.keyboard.type("password spraying");
    const options = page.getByRole("option");
    await options.first().waitFor();
    expect(await options.first().textContent()).toContain("Logins and password spraying");
    expect(await allFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    expect(await options.count()).toBe(0);
    await page.getByRole("combobox").fill("blockFor grows");
    await options.first().waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/docs\/guide\/.+\.html#.+/);
    expect(visitor.complaints).toEqual([]);
  });

  test("a query that nothing has says so", async () => {
    await using visitor = await visit("");
    await visitor.page.getByRole("combobox").fill("qqqzzzxxx");
    await visitor.page.getByText("Nothing found").waitFor();
    expect(visitor.complaints).toEqual([]);
  });

  test("the theme that is chosen stays for the next page", async () => {
    await using visitor = await visit("", { colorScheme: "light" });
    await visitor.page.getByRole("button", { name: "Use the dark theme" }).click();
    await visitor.page.getByRole("link", { name: "Ten minutes with Sluice" }).first().click();
    await visitor.page.getByRole("heading", { level: 1, name: "Ten minutes with Sluice" }).waitFor();
    expect(await visitor.page.evaluate("getComputedStyle(document.documentElement).colorScheme")).toBe("dark");
    await visitor.page.getByRole("button", { name: "Use the light theme" }).waitFor();
  });
});
