/** Regions in the console: all of them while home answers, and only what is known while a region is cut off. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy } from "../harness/tcp-fault-proxy.js";
import { type RunningService, startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, check, open, startBrowser } from "./console.js";

const rules = [
  { id: "per-account", key: ["account"], algorithm: "rolling-window", limit: 50, window: "1m", scope: "global" },
] as const;

describe.skipIf(whyMissing("chromium", "redis"))("regions", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  test("are shown with their traffic; a region that is cut off says so, and shows the others as unknown", async () => {
    await using home = await startRedis();
    await using euRedis = await startRedis();
    await using usRedis = await startRedis();
    await using toHome = await startTcpFaultProxy({ upstreamPort: home.port });
    const serviceIn = (region: string, store: string, globalStore: string): Promise<RunningService> =>
      startTestService({ rules, settings: { store, region, "global-store": globalStore, "admin-token": ADMIN } });
    await using eu = await serviceIn("eu-west", euRedis.url, toHome.url);
    await using us = await serviceIn("us-east", usRedis.url, home.url);
    for (const { http } of [eu, us]) for (let i = 0; i < 5; i++) await check(http, { account: "acme" });

    await using person = await open(browser, { at: eu.http, path: "/regions", token: ADMIN });
    const { page } = person;
    const row = (region: string) => page.getByRole("row", { name: region });
    await row("us-east").getByText("up", { exact: true }).waitFor();
    await row("eu-west").getByText("here").waitFor();
    await expect.poll(() => row("eu-west").locator("td").last().innerText(), { timeout: 60_000 }).toMatch(/^\d.* ms$/);
    expect(await seriousFindings(page)).toEqual([]);

    await toHome.refuse(true);
    toHome.cut();
    await page.getByText("The global store does not answer.").waitFor({ timeout: 30_000 });
    await expect.poll(() => row("us-east").count(), { timeout: 60_000 }).toBe(0);
    await row("eu-west").getByText("cut off").waitFor({ timeout: 30_000 });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);
    expect(await seriousFindings(page)).toEqual([]);
    expect(person.complaints).toEqual([]);
  }, 90_000);

  test("without a global store the page says how to begin", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    await using person = await open(browser, { at: service.http, path: "/regions", token: ADMIN });
    await person.page.getByText("This service counts in one store.").waitFor();
    expect(await seriousFindings(person.page)).toEqual([]);
  });
});
