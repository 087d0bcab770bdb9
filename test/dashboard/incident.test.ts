/**
 * An incident's hour as one journey in a real Chromium, without leaving the console: an alert fires, an editor looks after it, finds who
 * is refused and why, tries a candidate on their traffic, promotes it, and sees the promotion on the chart.
 */
import type { Browser } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, admin, check, makeToken, open, startBrowser } from "./console.js";
import { pastAlerts, pastTraffic } from "./past-traffic.js";

const orders = { id: "orders", key: ["user"], algorithm: "fixed-window", limit: 3, window: "1h" };

describe.skipIf(whyMissing("chromium"))("an incident", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
    return () => browser.close();
  });

  test.each([
    { colorScheme: "light", width: 1280 },
    { colorScheme: "dark", width: 390 },
  ] as const)("from the alert to the key, to a candidate and its promotion: %j", async (looks) => {
    const nowMs = Date.now();
    await using service = await startTestService({
      settings: { "admin-token": ADMIN },
      files: {
        "monitoring-history": pastTraffic({ nowMs, rule: "orders", incidentMinutes: 8 }),
        "shared-state": pastAlerts(nowMs),
      },
    });
    await admin(service.http, "PUT", "/rules", { rules: [orders] });
    const buy = async (times: number) => {
      for (let i = 0; i < times; i++) await check(service.http, { user: "big-shop", path: `/orders/${i}` });
    };
    await buy(9);
    await check(service.http, { path: "/a-request-without-a-user" });
    const token = await makeToken(service.http, "ann", "editor");
    await using person = await open(browser, { at: service.http, token, ...looks });
    const { page } = person;
    // Lost by a reload: the journey is one visit.
    await page.evaluate("window.isSameVisit = true");
    const goTo = async (name: string | RegExp): Promise<void> => {
      const menu = page.getByRole("button", { name: "Menu" });
      if (await menu.isVisible()) await menu.click();
      await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
    };

    // The alert: what the shipped detector finds in the last minutes.
    await page
      .getByText(/of the checks of rule orders are refused/)
      .first()
      .waitFor({ timeout: 30_000 });
    await goTo(/^Alerts/);
    const alert = page.getByRole("row", { name: /Many refusals.*rule orders/ });
    await alert.getByRole("button", { name: /^Acknowledge/ }).click();
    await page.getByLabel("Note").fill("looking");
    await page.getByRole("button", { name: "Acknowledge alert" }).click();
    await alert.getByText("ann looks after it: looking").waitFor();

    // Who: the rule's keys by refusals, and the page of the first.
    await alert.getByRole("link", { name: "Its keys of orders" }).click();
    await page.getByRole("button", { name: /^Of the rule orders/ }).waitFor();
    const first = page.locator("tbody tr").first();
    await first.getByRole("link", { name: /big-shop/ }).click();
    // Why: its refusals, and what is stored.
    await page.getByText("It would be refused now.").waitFor();
    await page.getByText("3 of 3 in use").waitFor();
    await page
      .locator("section", { hasText: "Last refusals" })
      .getByRole("row", { name: /orders.*\/orders\// })
      .first()
      .waitFor();
    expect(await seriousFindings(page)).toEqual([]);

    // What if: a candidate beside the live limit, on this key's traffic.
    await page.locator(".matched", { hasText: "orders" }).getByRole("link", { name: "orders", exact: true }).click();
    await page.getByRole("button", { name: "Add candidate" }).click();
    const candidate = page.locator(".part", { has: page.getByRole("heading", { name: "Candidate" }) });
    await candidate.getByLabel("Limit").fill("100");
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("a large customer grew");
    await page.getByRole("button", { name: "Save rule" }).click();
    await page
      .getByText(/Saved, and in force/)
      .first()
      .waitFor();
    await buy(6);
    await page
      .getByText(/of 6 requests: the candidate alone would have refused 0, and let pass 6 that were refused/)
      .waitFor();
    expect(await seriousFindings(page)).toEqual([]);

    // The change, and its trace on the chart.
    await page.getByRole("button", { name: "Promote the candidate" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Promote" }).click();
    await page.getByText(/The candidate's numbers are live/).waitFor();
    await buy(1);
    expect((await check(service.http, { user: "big-shop" })).allowed).toBe(true);
    await page
      .getByRole("list", { name: "Changes and alerts" })
      .first()
      .getByRole("link", { name: /promoted/i })
      .first()
      .waitFor();
    // The alert is a mark on the chart too, which leads back to it.
    await goTo("Overview");
    await page.getByLabel("Time", { exact: true }).selectOption("1h");
    await page.getByText(/^\d+ met no rule$/).waitFor();
    await page
      .getByRole("list", { name: "Changes and alerts" })
      .first()
      .getByRole("link", { name: /Alert: .*rule orders/ })
      .first()
      .click();
    await page.waitForURL(/\/alerts\?.*alert=/);
    await page.locator("tr.wanted, .wanted").first().waitFor();
    expect(await page.evaluate("window.isSameVisit")).toBe(true);
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);
    const { entries } = await admin(service.http, "GET", "/audit?limit=20");
    expect(new Set((entries as { actor?: string; author?: string }[]).map((one) => one.actor ?? one.author))).toContain(
      "ann",
    );
    expect(person.complaints).toEqual([]);
  });
});
