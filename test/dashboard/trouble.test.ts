/** The console while the store is away, in a real Chromium: every page says so, nothing unknown is shown as 0 or in green. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, admin, check, open, startBrowser, startTraffic } from "./console.js";

const BANNER = /The store has not answered since \d\d:\d\d:\d\d/;

async function rulesAt(at: string): Promise<void> {
  const rule = { key: ["user"], algorithm: "fixed-window", limit: 50, window: "1h" };
  for (const onStoreFailure of ["local", "allow", "deny"]) {
    const match = { path: `/${onStoreFailure}` };
    await admin(at, "PUT", `/rules/policy-${onStoreFailure}`, { ...rule, match, onStoreFailure });
  }
  for (const id of ["starter-per-user", "starter-per-address"]) await admin(at, "DELETE", `/rules/${id}`);
}

/** From page to page by links, so that the stream stays open. */
async function visit(page: Page, name: string): Promise<void> {
  const menu = page.getByRole("button", { name: "Menu" });
  if (await menu.isVisible()) await menu.click();
  // An alert that fires is counted beside its page's name.
  const link = page.getByRole("link", { name: new RegExp(`^${name}( \\d+ firing)?$`) });
  await link.last().click();
  await page.getByRole("heading", { level: 1 }).waitFor();
}

const ways: readonly {
  way: string;
  stop(redis: RedisServer): void | Promise<void>;
  start(redis: RedisServer): void | Promise<void>;
}[] = [
  { way: "stopped", stop: (redis) => redis.kill(), start: (redis) => redis.restart() },
  { way: "hanging", stop: (redis) => redis.pause(), start: (redis) => redis.resume() },
];

describe.skipIf(whyMissing("chromium", "redis"))("in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  test.each(ways)(
    "with Redis $way every page tells the outage, and all of it ends by itself",
    async ({ stop, start }) => {
      await using redis = await startRedis();
      await using service = await startTestService({ settings: { "admin-token": ADMIN, store: redis.url } });
      await rulesAt(service.http);
      await using person = await open(browser, { at: service.http, token: ADMIN });
      const { page } = person;
      await page.getByText(/1 instance · rules version/).waitFor();
      const traffic = startTraffic(service.http, { user: "steady", path: "/allow" });
      try {
        await page.getByRole("list").getByText("policy-allow").waitFor();
        await stop(redis);
        await page.getByText(BANNER).waitFor();
        await page.getByText("Figures are those of this instance alone.").waitFor();
        await page.getByText(/this instance alone · rules version/).waitFor();
        // By policy, and counted: the figures go on.
        await expect
          .poll(async () => await page.locator(".figure", { hasText: "By failure policy" }).innerText(), {
            timeout: 60_000,
          })
          .toMatch(/\n[1-9]\d* \/s/);
        expect(await page.locator(".figure", { hasText: "Allowed" }).first().innerText()).toMatch(/\n[1-9]\d* \/s/);

        for (const [policy, told] of [
          ["local", /is counted by this instance alone/],
          ["allow", /passes, and is not counted/],
          ["deny", /is refused until the store answers/],
        ] as const) {
          await page.goto(`/keys?user=steady&path=${encodeURIComponent(`/${policy}`)}`);
          await page.getByText("The store does not answer. By failure policy it would").waitFor();
          await page.getByText(told).waitFor();
          expect(await page.locator(".notice.good, .tag.good").count()).toBe(0);
          expect(await page.getByText("Stored").locator("xpath=following-sibling::dd[1]").innerText()).toBe("unknown");
          await page.getByText(BANNER).waitFor();
        }

        await visit(page, "Rules");
        await page.getByText("Last hour, this instance").first().waitFor();
        await page.getByRole("row", { name: /policy-allow.*[1-9]\d* allowed/ }).waitFor();
        await page.getByText(BANNER).waitFor();
        await visit(page, "Top keys");
        await page.getByText(/Of this instance alone/).waitFor();
        await page.getByText("steady").first().waitFor();
        await visit(page, "Alerts");
        await page.getByText("Alerts of before cannot be read.").waitFor();
        expect(await page.getByText("All is as usual.").count()).toBe(0);
        await visit(page, "Store");
        await page.getByText("It does not answer.").waitFor();
        for (const name of ["History", "Audit", "Tokens"]) {
          await visit(page, name);
          await page.getByText(BANNER).waitFor();
        }
        expect(await seriousFindings(page)).toEqual([]);

        await start(redis);
        await page.getByText(BANNER).waitFor({ state: "detached", timeout: 30_000 });
        await page.goto("/keys?user=steady&path=%2Fallow");
        await page.getByText("It would").waitFor();
        await page.goto("/");
        await page.getByText(/1 instance · rules version/).waitFor();
      } finally {
        await traffic.stop();
      }
      expect(person.complaints).toEqual([]);
    },
    // Every page twice, at the pace of a loaded machine.
    120_000,
  );

  test("a console that is opened while Redis is away says so at once, and shows unknown figures as unknown", async () => {
    await using redis = await startRedis();
    await using service = await startTestService({ settings: { "admin-token": ADMIN, store: redis.url } });
    await rulesAt(service.http);
    await redis.kill();
    await check(service.http, { user: "ann", path: "/deny" });
    await using person = await open(browser, { at: service.http, token: ADMIN, width: 390, path: "/store" });
    const { page } = person;
    await page.getByText(BANNER).waitFor();
    await page.getByText("No node answers.").first().waitFor();
    expect(await page.locator(".figure", { hasText: "Counters" }).innerText()).toContain("unknown");
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);
    expect(await seriousFindings(page)).toEqual([]);
    expect(person.complaints).toEqual([]);
  });

  test("without monitoring the store's outage is told all the same", async () => {
    await using redis = await startRedis();
    await using service = await startTestService({
      settings: { "admin-token": ADMIN, store: redis.url, monitoring: "off" },
    });
    await using person = await open(browser, { at: service.http, token: ADMIN, path: "/rules" });
    const { page } = person;
    await page.getByRole("row", { name: /starter-per-user/ }).waitFor();
    expect(await page.getByText("no traffic").count()).toBe(0);
    await redis.kill();
    await check(service.http, { user: "ann" });
    await page.getByText(BANNER).waitFor();
  });

  test("the live chart begins with the seconds that the service has kept", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    const traffic = startTraffic(service.http, { user: "steady" });
    await new Promise((resolve) => setTimeout(resolve, 8_000));
    await traffic.stop();
    const openedMs = Date.now();
    await using person = await open(browser, { at: service.http, token: ADMIN });
    const { page } = person;
    const plot = page.getByRole("img", { name: /Decisions a second/ }).locator(".u-over");
    await plot.waitFor();
    await plot.hover({ position: { x: 2, y: 20 } });
    const label = page.getByRole("img", { name: /Decisions a second/ });
    const firstTime = async (): Promise<number> => {
      const [hours, minutes, seconds] = /at (\d\d):(\d\d):(\d\d)/
        .exec((await label.getAttribute("aria-label")) ?? "")!
        .slice(1)
        .map(Number);
      return new Date(openedMs).setHours(hours!, minutes!, seconds!, 0);
    };
    await expect.poll(async () => openedMs - (await firstTime())).toBeGreaterThan(5_000);
  });
});
