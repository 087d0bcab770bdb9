/** An edit among others, in a real Chromium: two tabs on one rule, and the database that goes away in between. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type PostgresServer, startPostgres } from "../harness/postgres.js";
import { type RunningService, startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, check, open, startBrowser } from "./console.js";

const RULE = "/rules/starter-per-user";
const limit = (page: Page) => page.getByLabel("Limit", { exact: true });
const limitOf = (service: RunningService) => service.rules.find(({ id }) => id === "starter-per-user")?.limit;
const review = (page: Page) => page.getByRole("button", { name: "Review and save" }).click();
const save = (page: Page) => page.getByRole("button", { name: "Save rule" }).click();

describe.skipIf(whyMissing("chromium", "postgresql"))("in a browser", () => {
  let browser: Browser;
  let postgres: PostgresServer;
  let service: RunningService;
  beforeAll(async () => {
    [browser, postgres] = await Promise.all([startBrowser(), startPostgres()]);
    service = await startTestService({ settings: { "admin-token": ADMIN, database: postgres.url } });
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
    await postgres?.[Symbol.asyncDispose]();
  });

  test("of two tabs that edit one rule, the second is shown what the first did, and decides", async () => {
    await using person = await open(browser, { at: service.http, token: ADMIN, path: RULE });
    const other = await person.context.newPage();
    await other.goto(RULE);
    await limit(person.page).fill("11");
    await limit(other).fill("12");
    await review(person.page);
    await save(person.page);
    await person.page.getByText(/Saved, and in force/).waitFor();
    await review(other);
    const dialog = other.getByRole("dialog");
    await dialog.getByText("They changed the same as you: going on replaces what they did.").waitFor();
    expect(await dialog.getByRole("button", { name: "Save rule" }).isDisabled()).toBe(true);
    expect(await dialog.locator("ins").first().innerText()).toBe("11");
    expect(limitOf(service)).toBe(11);
    await dialog.getByRole("button", { name: /Go on from version/ }).click();
    await dialog.getByText("12", { exact: true }).waitFor();
    await save(other);
    await other.getByText(/Saved, and in force/).waitFor();
    expect(limitOf(service)).toBe(12);
    expect(person.complaints).toEqual([]);
  });

  test("on a slow network a second click on Save makes no second version", async () => {
    await using person = await open(browser, { at: service.http, token: ADMIN, path: RULE });
    const { page } = person;
    let sent = 0;
    await page.route("**/admin/v1/rules/starter-per-user**", async (route) => {
      if (route.request().method() === "PUT" && !route.request().url().includes("dryRun")) sent++;
      await new Promise((resolve) => setTimeout(resolve, 300));
      await route.continue();
    });
    const before = service.rulesVersion;
    await limit(page).fill("13");
    await review(page);
    await page.getByText("Asking what would change …").waitFor();
    await page.getByRole("dialog").locator("ins").waitFor();
    await page.getByRole("button", { name: "Save rule" }).dblclick();
    await page.getByText(/Saved, and in force/).waitFor();
    expect([sent, service.rulesVersion - before]).toEqual([1, 1]);
  });

  test("while PostgreSQL is down checks go on, pages say what is missing, and an edit waits for it", async () => {
    await using person = await open(browser, { at: service.http, token: ADMIN, path: RULE });
    const { page } = person;
    await postgres.kill();
    await limit(page).fill("21");
    const away = page.getByText("The database of rules, versions and the audit does not answer.");
    await page.getByText("It cannot be checked").waitFor();
    await away.first().waitFor();
    expect(await page.getByRole("button", { name: "Review and save" }).isDisabled()).toBe(true);
    expect((await check(service.http, { user: "ann" })).allowed).toBe(true);
    expect(await limit(page).inputValue()).toBe("21");
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("button", { name: "Keep and leave" }).click();
    await page.getByText("Busiest rules").waitFor();
    for (const [path, title] of [
      ["/history", "No history"],
      ["/audit", "No audit"],
      ["/tokens", "No tokens"],
      ["/alerts/settings", "No alert policy"],
    ] as const) {
      await page.goto(path);
      await page.getByText(title, { exact: true }).waitFor();
      await away.first().waitFor();
    }
    expect(await seriousFindings(page)).toEqual([]);
    await page.goto(RULE);
    await page.getByText("Your unsaved changes").waitFor();
    await page.getByText("It cannot be checked").waitFor();
    await postgres.restart();
    // Without a keystroke.
    await page.getByText("No mistakes.").waitFor({ timeout: 30_000 });
    expect(await limit(page).inputValue()).toBe("21");
    await review(page);
    await page.getByRole("dialog").locator("ins").waitFor({ timeout: 30_000 });
    await save(page);
    await page.getByText(/Saved, and in force/).waitFor();
    expect(limitOf(service)).toBe(21);
  });
});
