/** Blocked keys in the console: listed, led to their explanation, lifted by an editor, and unknown while the store is away. */

import type { Browser } from "playwright-core";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";
import { startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, admin, check, makeToken, open, startBrowser } from "./console.js";

const rules: Rule[] = [
  { id: "login", key: ["ip"], algorithm: "rolling-window", limit: 1, window: "10m", blockFor: ["1h", "1d"] },
];

describe.skipIf(whyMissing("chromium", "redis"))("blocked keys", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser.close());

  test("are listed, and lifted by an editor alone", async () => {
    await using redis = await startRedis();
    await using service = await startTestService({
      settings: { store: redis.url, "admin-token": ADMIN, "store-deadline": "2s" },
    });
    const at = service.http;
    await admin(at, "PUT", "/rules", { rules });
    for (let i = 0; i < 2; i++) await check(at, { ip: "203.0.113.7" });
    await admin(at, "POST", "/keys/block", { rule: "login", attributes: { ip: "198.51.100.1" }, for: "2d" });

    await using viewer = await open(browser, { at, path: "/keys", token: await makeToken(at, "v", "viewer") });
    const list = viewer.page.locator("section", { hasText: "Blocked now" });
    await list.getByText("203.0.113.7").waitFor();
    expect(await list.getByRole("row").count()).toBe(3);
    expect(await list.getByRole("button", { name: "Lift" }).count()).toBe(0);

    await using editor = await open(browser, { at, path: "/keys", token: ADMIN });
    const { page } = editor;
    const row = page.locator("section", { hasText: "Blocked now" }).getByRole("row", { name: "203.0.113.7" });
    await row.waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await row.getByRole("link", { name: "203.0.113.7" }).click();
    await page.getByText("By login (blocked).").waitFor();
    await page.goBack();
    await row.getByRole("button", { name: "Lift" }).click();
    await page.getByText("The block under login is lifted, and its counter reset.").waitFor();
    await row.waitFor({ state: "detached" });
    expect((await check(at, { ip: "203.0.113.7" })).allowed).toBe(true);

    await redis.kill();
    await page.reload();
    await page.getByText("Blocked keys are unknown").waitFor();
    expect(editor.complaints).toEqual([]);
  });

  test("251 have two pages: each tells how many rows it has, and rows out of sight are found and reached", async () => {
    await using redis = await startRedis();
    await using service = await startTestService({
      settings: { store: redis.url, "admin-token": ADMIN, "store-deadline": "2s" },
    });
    const at = service.http;
    await admin(at, "PUT", "/rules", { rules });
    // The longest block comes first.
    for (let i = 0; i <= 250; i++)
      await admin(at, "POST", "/keys/block", { rule: "login", attributes: { ip: `key-${i}.` }, for: `${3_000 - i}m` });
    await using editor = await open(browser, { at, path: "/keys", token: ADMIN });
    const { page } = editor;
    const list = page.locator("section", { hasText: "Blocked now" });
    const table = list.getByRole("table");
    // Some more with each frame.
    await expect.poll(() => table.getByRole("row").count(), { timeout: 15_000 }).toBe(251);
    expect(await table.getAttribute("aria-rowcount")).toBe("251");
    await list.getByText("1 to 250 of 251").waitFor();
    const lastRow = table.getByRole("row").last();
    await lastRow.getByRole("button", { name: "Lift" }).focus();
    expect(await lastRow.innerText()).toContain("key-249.");
    // As Ctrl-F does.
    expect(await page.evaluate('getSelection().removeAllRanges(); find("key-200.")')).toBe(true);
    await list.getByRole("button", { name: "Next" }).click();
    await list.getByText("251 to 251 of 251").waitFor();
    expect(await table.getAttribute("aria-rowcount")).toBe("2");
    expect(await table.getByRole("row").last().innerText()).toContain("key-250.");
    // A longer block takes its place on the first page, and moves no row from there to this one.
    await admin(at, "POST", "/keys/block", { rule: "login", attributes: { ip: "newcomer." }, for: "5000m" });
    await page.getByText("Blocked now (252)").waitFor();
    expect(await table.getByRole("row").allInnerTexts()).toEqual([
      expect.stringContaining("Free in"),
      expect.stringContaining("key-250."),
    ]);
    await list.getByText("1 blocked since, on the first page").waitFor();
    await list.getByRole("button", { name: "Previous" }).click();
    await list.getByText("1 to 250 of 252").waitFor();
    // A row has its text when it has been drawn, a frame or some later.
    await table.getByRole("row").nth(1).getByText("newcomer.").waitFor();
    expect(editor.complaints).toEqual([]);
  });
});
