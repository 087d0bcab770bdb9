/** The console's view of load: utilisation and classes, limits that move, who waits; of a fleet, on a phone, and while the store is away. */
import type { Browser, Page } from "playwright-core";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";
import { postJson, startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, admin, cellsOf, check, makeToken, open, startBrowser } from "./console.js";

const HOSTILE = "gift\u202egpj.exe";

const rules: Rule[] = [
  {
    id: "keep-serving",
    match: { kind: "work" },
    key: [],
    algorithm: "load-shedding",
    signal: ["reported", "inflight"],
    limit: 500,
    class: { attribute: "criticality", default: "normal" },
    classes: { sheddable: 0.5, normal: 0.92, critical: 2 },
  },
  {
    id: "tuned",
    match: { kind: "work" },
    key: ["user"],
    algorithm: "token-bucket",
    limit: 100,
    window: "1s",
    adapt: { signal: "reported", target: 0.8, min: 70, max: 200 },
  },
  {
    id: "paced",
    match: { path: "/slow/**" },
    key: ["path"],
    algorithm: "gcra",
    limit: 1,
    window: "10m",
    burst: 1,
    maxWait: "1h",
  },
];

const figure = (page: Page, section: string, label: string): Promise<string> =>
  page.locator("section", { hasText: section }).first().locator(".figure", { hasText: label }).first().innerText();

describe.skipIf(whyMissing("chromium", "redis"))("load", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  test("is shown of the whole fleet to a viewer, and of one instance while the store is away", async () => {
    await using redis = await startRedis();
    const settings = { store: redis.url, "admin-token": ADMIN, "store-deadline": "2s" };
    await using busy = await startTestService({ settings });
    await using other = await startTestService({ settings });
    for (const { http } of [busy, other]) await admin(http, "PUT", "/rules", { rules });
    const reported = await postJson(`${busy.http}/v1/utilisation`, { value: 0.99, source: "db-1", ttl: "5m" });
    expect(reported.status).toBe(200);

    const sent = { sheddable: 30, critical: 12 };
    for (const [criticality, count] of Object.entries(sent)) {
      for (let i = 0; i < count; i++) await check(busy.http, { kind: "work", user: `u${i}`, criticality });
    }
    // The first passes; three wait, in one instance, for turns that are minutes away.
    const leaving = new AbortController();
    const ask = () =>
      fetch(`${busy.http}/v1/forward-auth`, {
        headers: { "x-forwarded-uri": "/slow/report" },
        signal: leaving.signal,
      }).catch(() => undefined);
    await ask();
    const waiting = [ask(), ask(), ask()];

    await using person = await open(browser, {
      at: other.http,
      path: "/load",
      token: await makeToken(other.http, "v", "viewer"),
    });
    const { page } = person;
    await page.getByText("Of 2 instances.").waitFor();
    // Limits move once a second, and figures are written each second.
    await expect.poll(() => figure(page, "tuned", "Limit in force"), { timeout: 30_000 }).toContain("\n70");
    expect(await figure(page, "keep-serving", "Reported")).toContain("99 %");
    // The number comes from the store, and its leader with that instance's figures: up to a second later.
    await expect
      .poll(() => figure(page, "tuned", "Moved by"), { timeout: 60_000 })
      .toMatch(/\n\S+-\d+-[0-9a-f]{12}\s*$/);
    await expect.poll(() => cellsOf(page, "keep-serving", /critical/), { timeout: 60_000 }).toContain("12");
    const [threshold, passed, shed] = await cellsOf(page, "keep-serving", /sheddable/);
    expect(threshold).toBe("50 %");
    expect(Number(passed) + Number(shed)).toBe(sent.sheddable);
    expect((await cellsOf(page, "keep-serving", /critical/)).slice(0, 3)).toEqual(["200 %", "12", "0"]);
    await page.getByText(/Last moves/).click();
    // Two instances saw the move; one made it.
    expect(await page.getByText("the store was away").count()).toBe(0);
    await page.getByText("utilisation 99 %, above 80 %").first().waitFor();

    await expect.poll(() => cellsOf(page, "Waiting for a turn", /paced/), { timeout: 60_000 }).toContain("3");
    const [key, , requests] = await cellsOf(page, "Who waits now", /slow/);
    expect([key, requests]).toEqual(["path=/slow/report", "3"]);
    expect(await seriousFindings(page)).toEqual([]);

    // On a phone, in the dark.
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);
    expect(await seriousFindings(page)).toEqual([]);

    // A rule's own page shows the same of it alone.
    await page.goto("/rules/tuned");
    await expect.poll(() => figure(page, "Its limit moves", "Limit in force")).toContain("\n70");
    expect(await page.getByText("Sheds load").count()).toBe(0);

    await redis.kill();
    await check(other.http, { kind: "work", user: "u1" });
    await page.goto("/load");
    await page.getByText("Of this instance alone: the others cannot be asked.").waitFor();
    await expect.poll(() => figure(page, "tuned", "Moved by")).toContain("the store is away");
    await expect.poll(() => figure(page, "tuned", "Utilisation"), { timeout: 60_000 }).toContain("–");
    // Those who wait have their turns; this instance has none of them.
    expect((await cellsOf(page, "Waiting for a turn", /paced/))[1]).toBe("0");
    await page.getByText("Who waits in the others is unknown.").waitFor();
    await page.getByText("Blocked keys are unknown").waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    leaving.abort();
    await Promise.all(waiting);
    expect(person.complaints).toEqual([]);
  }, 120_000);

  test("without such rules the page says what to do; names that hide characters are spelled out", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    await using person = await open(browser, { at: service.http, path: "/load", token: ADMIN });
    const { page } = person;
    await page.getByText("No rule sheds load, moves its limit, or lets requests wait.").waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole("main").getByRole("link", { name: "New rule" }).click();
    await page.getByRole("heading", { name: "New rule", exact: true }).waitFor();
    for (const user of [HOSTILE, "a\u0000b", `${"x".repeat(3_000)}`]) await check(service.http, { user });
    await page.goto("/top-keys");
    await page.getByText("user=gift\\u202egpj.exe").waitFor();
    await page.getByText("user=a\\u0000b").waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);
    expect(person.complaints).toEqual([]);
  });
});
