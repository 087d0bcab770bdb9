/** The dashboard under strain, in a real Chromium: very many rules, a service that goes away and comes back, no mouse, a small screen. */
import type { Browser } from "playwright-core";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { makeTempFolder } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { type RunningService, startTestService } from "../service/running-service.js";
import { ADMIN, admin, open, startBrowser, startTraffic } from "./console.js";

const manyRules: Rule[] = Array.from({ length: 1_000 }, (_, n) => ({
  id: `rule-${String(n).padStart(4, "0")}`,
  description: `Limit number ${n} of team ${n % 17}`,
  match: { path: `/v1/part-${n}/**`, tenant: `tenant-${n % 50}` },
  key: ["user"],
  algorithm: "rolling-window",
  limit: 100 + n,
  window: "1m",
}));

describe.skipIf(whyMissing("chromium", "redis"))("in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  test("with a thousand rules the list shows a hundred, is searched and paged, and one is edited", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    await admin(service.http, "PUT", "/rules", { rules: manyRules });
    await using person = await open(browser, { at: service.http, token: ADMIN });
    const { page } = person;
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await page.getByRole("row", { name: /rule-0099/ }).waitFor();
    // A page of them and the header: a browser that lays out a thousand is slow on any machine.
    expect(await page.getByRole("row").count()).toBe(101);
    await page.getByLabel("Search rules").fill("part-777 tenant-27");
    await page.getByRole("row", { name: /rule-0001/ }).waitFor({ state: "detached" });
    await page.getByRole("row", { name: /rule-0777/ }).waitFor();
    expect(await page.getByRole("row").count()).toBe(2);
    await page.getByLabel("Search rules").fill("");
    await page.getByText("1 to 100 of 1,000").waitFor();
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByRole("row", { name: /rule-0150/ }).waitFor();

    await page
      .getByRole("row", { name: /rule-0150/ })
      .getByRole("link")
      .click();
    await page.getByLabel("Limit", { exact: true }).fill("7");
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("dialog").locator("ins", { hasText: "7" }).waitFor();
    await page.getByRole("button", { name: "Save rule" }).click();
    await page.getByText(/Saved, and in force/).waitFor();
    expect(service.rules[150]?.limit).toBe(7);
    expect(person.complaints).toEqual([]);
  });

  test("while the service is away the pages stay, say how old they are, and go on by themselves when it is back", async () => {
    const settings = {
      "admin-token": ADMIN,
      port: String(await freePort()),
      "data-folder": makeTempFolder("restart"),
      "drain-timeout": "500ms",
    };
    let service: RunningService = await startTestService({ settings });
    try {
      await using person = await open(browser, { at: service.http, token: ADMIN });
      const { page } = person;
      await page.getByText(/1 instance · rules version 1/).waitFor();
      await page.goto("/rules/starter-per-user");
      await page.getByLabel("Limit", { exact: true }).fill("77");
      await page.getByText("No mistakes.").waitFor();

      await service.close();
      await page
        .getByText(/The service does not answer\. These figures are from \d\d:\d\d:\d\d, \d+ s ago\./)
        .waitFor();
      // What was typed is still there, and the other pages still open.
      expect(await page.getByLabel("Limit", { exact: true }).inputValue()).toBe("77");

      service = await startTestService({ settings });
      await page.getByText("The service does not answer.").waitFor({ state: "detached" });
      // The session outlives the restart: it is signed, not stored.
      await page.getByRole("button", { name: "Review and save" }).click();
      await page.getByRole("button", { name: "Save rule" }).click();
      await page.getByText(/Saved, and in force as version 2/).waitFor();
      await page.getByRole("link", { name: "Overview" }).click();
      await page.getByText(/1 instance · rules version 2/).waitFor();
      expect(person.complaints).toEqual([]);
    } finally {
      await service.close();
    }
  });

  test("when only the live stream is lost, the overview says so and takes it up again", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    await using person = await open(browser, { at: service.http });
    const { page } = person;
    let isCut = true;
    await page.route("**/stats/stream", (route) => (isCut ? route.abort() : route.fallback()));
    await page.getByLabel("Token").fill(ADMIN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("The live stream is lost.").waitFor();
    isCut = false;
    await page.getByText("The live stream is lost.").waitFor({ state: "detached" });
    await page.getByText(/1 instance · rules version 1/).waitFor();
  });

  test("where a service counts no traffic, the pages say so and the rest works", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN, monitoring: "off" } });
    await using person = await open(browser, { at: service.http, token: ADMIN });
    const { page } = person;
    await page.getByText("This service does not offer the live stream.").waitFor();
    await page.getByRole("link", { name: "Top keys" }).click();
    await page.getByText("This service does not offer top keys.").waitFor();
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await page.getByRole("row", { name: /starter-per-user/ }).waitFor();
    expect(person.complaints).toEqual([]);
  });

  test("an outage of the store comes up as an alert, on the overview and in the navigation", async () => {
    await using redis = await startRedis();
    await using service = await startTestService({ settings: { "admin-token": ADMIN, store: redis.url } });
    await using person = await open(browser, { at: service.http, token: ADMIN });
    const { page } = person;
    await page.getByText("Nothing is firing.").waitFor();
    const traffic = startTraffic(service.http, { user: "steady" });
    try {
      await redis.stop();
      await page.getByRole("link", { name: "Alerts 1 firing" }).waitFor({ timeout: 25_000 });
      await page.locator(".list").getByText("Store away").first().waitFor();
      await page.getByRole("link", { name: "Alerts 1 firing" }).click();
      await page.getByRole("row", { name: /Store away.*firing for/ }).waitFor();
      await page.getByRole("link", { name: "Store", exact: true }).click();
      await page.getByText("away", { exact: true }).waitFor();
    } finally {
      await traffic.stop();
    }
    expect(person.complaints).toEqual([]);
  });

  test("everything can be done with the keyboard alone, and the focus is always seen", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    await using person = await open(browser, { at: service.http });
    const { page } = person;
    const focused = (): Promise<string> =>
      page.evaluate(`(() => {
        const at = document.activeElement;
        const label = at.labels?.[0]?.textContent ?? at.getAttribute("aria-label") ?? at.textContent;
        return label.trim().replace(/\\s+/g, " ");
      })()`);
    const outline = (): Promise<string> =>
      page.evaluate(
        "getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth",
      );
    const tabTo = async (wanted: RegExp, { back = false } = {}): Promise<void> => {
      for (let presses = 0; presses < 80; presses++) {
        await page.keyboard.press(back ? "Shift+Tab" : "Tab");
        const name = await focused();
        if (wanted.test(name)) {
          expect(await outline(), name).toMatch(/solid[1-9]/);
          return;
        }
      }
      throw new Error(`${wanted} was not reached by Tab`);
    };
    await page.getByLabel("Token").waitFor();
    await tabTo(/^Token$/);
    await page.keyboard.type(ADMIN);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Overview" }).waitFor();

    // From the top of the page, the first stop leads past the navigation.
    await page.goto("/rules/starter-per-user");
    await page.getByLabel("Limit", { exact: true }).waitFor();
    await tabTo(/^Skip to the content$/, { back: true });
    await page.keyboard.press("Enter");
    await tabTo(/^Limit$/);
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("6");
    await page.getByText("No mistakes.").waitFor();
    const canBeSaved = () => page.getByRole("button", { name: "Review and save" }).isEnabled();
    await expect.poll(canBeSaved, { timeout: 60_000 }).toBe(true);
    await tabTo(/^Review and save$/);
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.locator("ins", { hasText: "6" }).waitFor();
    // The dialog holds the focus, however often one presses Tab.
    for (let presses = 0; presses < 12; presses++) {
      await page.keyboard.press("Tab");
      const isInside = await page.evaluate(
        "document.activeElement === document.body || document.activeElement.closest('dialog') !== null",
      );
      expect(isInside).toBe(true);
    }
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await focused()).toBe("Review and save");
    // At once: a dialog that closed a moment ago does not close the next one.
    await page.keyboard.press("Enter");
    await dialog.locator("ins", { hasText: "6" }).waitFor();
    await tabTo(/^Reason$/);
    await page.keyboard.type("without a mouse");
    await page.keyboard.press("Enter");
    await page.getByText(/Saved, and in force/).waitFor();
    expect(service.rules[0]?.limit).toBe(6);
  });

  test("on a phone every page fits its width, and the menu leads everywhere", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    await admin(service.http, "PUT", "/rules/a-rule-with-quite-a-long-name-for-the-screen-of-a-small-phone", {
      ...manyRules[0],
      id: undefined,
      description: "Words-that-do-not-break-".repeat(8),
      candidate: { limit: 3 },
    });
    await using person = await open(browser, { at: service.http, token: ADMIN, width: 360 });
    const { page } = person;
    const long = "a-rule-with-quite-a-long-name-for-the-screen-of-a-small-phone";
    const paths = [
      "/",
      "/rules",
      "/new-rule",
      `/rules/${long}`,
      `/keys?user=${"u".repeat(300)}`,
      "/top-keys",
      "/alerts",
      "/store",
      "/audit",
      "/tokens",
      "/history",
    ];
    for (const path of paths) {
      await page.goto(path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForLoadState("load");
      expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth"), path).toBeLessThanOrEqual(
        0,
      );
    }
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("dialog").getByRole("link", { name: "Store" }).click();
    await page.getByRole("heading", { name: "Store", level: 1 }).waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });
});
