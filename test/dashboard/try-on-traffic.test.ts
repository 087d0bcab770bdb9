/** "Try on traffic" and suggested limits, in a real Chromium: light, dark, on a phone, without a recording, and while Redis is down. */
import type { Browser, Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, check, open, startBrowser } from "./console.js";

const RULE = "/rules/starter-per-user";
const panel = (page: Page, name: string) => page.locator("section.panel").filter({ hasText: name });

async function traffic(http: string): Promise<void> {
  for (const [user, times] of Object.entries({ ann: 9, bob: 4, cy: 1 })) {
    for (let i = 0; i < times; i++) await check(http, { user });
  }
}

async function tryWithLimit(page: Page, limit: string): Promise<void> {
  await page.getByLabel("Limit", { exact: true }).fill(limit);
  await page.getByText("No mistakes.").waitFor();
  await page.getByRole("button", { name: "Try on traffic" }).click();
}

describe.skipIf(whyMissing("chromium", "redis"))("in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
    return () => browser.close();
  });

  test.each([
    { colorScheme: "light", width: 1280 },
    { colorScheme: "dark", width: 1280 },
    { colorScheme: "light", width: 390 },
  ] as const)("a draft is tried before it is saved, and a suggestion becomes a candidate: %j", async (looks) => {
    await using service = await startTestService({
      settings: { "admin-token": ADMIN, record: makeTempFolder("try-console") },
    });
    await traffic(service.http);
    await using person = await open(browser, { at: service.http, token: ADMIN, path: RULE, ...looks });
    const { page } = person;
    await tryWithLimit(page, "3");
    const tried = panel(page, "Nothing is saved or changed");
    await tried
      .getByRole("cell", { name: /user=ann/ })
      .first()
      .waitFor();
    expect(await tried.innerText()).toMatch(/newly refused\s*3/i);
    await page.getByRole("button", { name: "Suggest limits" }).click();
    await page.getByRole("button", { name: "Use as candidate: 11, from max" }).click();
    await page.getByText("The rule was changed since").waitFor();
    expect(await page.getByLabel("YAML").inputValue()).toContain("limit: 11");
    await page.getByRole("button", { name: "Review and save" }).click();
    await page
      .getByRole("dialog")
      .getByText("14 of 14 requests of 3 keys would meet the rule; 3 newly refused of 2 keys, 0 newly admitted.", {
        exact: true,
      })
      .waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    // Every user has five requests in ten seconds today; nobody would be refused with nine.
    await page.getByLabel("Limit", { exact: true }).first().fill("9");
    await page.getByRole("button", { name: "Review and save" }).click();
    await page
      .getByRole("dialog")
      .getByText("14 of 14 requests of 3 keys would meet the rule; 0 newly refused, 4 newly admitted of 1 key.", {
        exact: true,
      })
      .waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    const width = await page.evaluate("document.documentElement.scrollWidth");
    expect(width).toBeLessThanOrEqual(looks.width);
    expect(person.complaints).toEqual([]);
  });

  test("without a recording the panel says what to do", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    await using person = await open(browser, { at: service.http, token: ADMIN, path: RULE });
    const { page } = person;
    await tryWithLimit(page, "3");
    await page.getByText("This service records no traffic.").waitFor();
    await page.getByRole("button", { name: "Suggest limits" }).click();
    await page.getByText("Nothing to suggest from.").waitFor();
    expect(await seriousFindings(page)).toEqual([]);
  });

  test("while Redis is down a draft is still tried on what was recorded before", async () => {
    await using redis = await startRedis();
    await using service = await startTestService({
      settings: { "admin-token": ADMIN, store: redis.url, record: makeTempFolder("try-console") },
    });
    await traffic(service.http);
    await redis.kill();
    await using person = await open(browser, { at: service.http, token: ADMIN, path: RULE });
    const { page } = person;
    await tryWithLimit(page, "3");
    await panel(page, "Nothing is saved or changed")
      .getByRole("cell", { name: /user=ann/ })
      .first()
      .waitFor();
    expect(await seriousFindings(page)).toEqual([]);
  });
});
