/** The console from elsewhere, in a real Chromium: a wall screen that signs itself in, and links of the Grafana dashboard. */
import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";
import { startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, admin, check, makeToken, open, startBrowser, startTraffic } from "./console.js";

interface GrafanaPanel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
  readonly links?: readonly { readonly url: string }[];
  readonly fieldConfig: { readonly defaults: { readonly links?: readonly { readonly url: string }[] } };
}

describe.skipIf(whyMissing("chromium", "redis"))("the console from elsewhere", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
    return () => browser.close();
  });

  test("a viewer's link shows a wall screen without signing in by hand, also while Redis is down", async () => {
    await using redis = await startRedis();
    const settings = { "admin-token": ADMIN, store: redis.url, "store-deadline": "1s" };
    await using service = await startTestService({ settings });
    // The link is shown with the new token, to the admin who made it.
    let link = "";
    {
      await using person = await open(browser, { at: service.http, token: ADMIN, path: "/tokens" });
      const { page } = person;
      await page.getByRole("button", { name: "New token" }).click();
      await page.getByLabel("Name", { exact: true }).fill("lobby");
      await page.getByRole("button", { name: "Make token" }).click();
      link = await page.locator("code", { hasText: "/wall#token=" }).innerText();
      expect(await seriousFindings(page)).toEqual([]);
    }
    const traffic = startTraffic(service.http, { user: "steady" });
    await using screen = await open(browser, { at: service.http, path: new URL(link).pathname, width: 1920 });
    const { page } = screen;
    const sent: string[] = [];
    page.on("request", (request) => sent.push(`${request.url()} ${request.headers().referer ?? ""}`));
    try {
      // A link without its token asks for one.
      await page.getByLabel("Token").waitFor();
      await page.goto(link);
      await page.reload();
      await page.getByRole("img", { name: /^Decisions a second; .*Allowed [1-9]/ }).waitFor();
      await page.getByText("starter-per-user").first().waitFor();
    } finally {
      await traffic.stop();
    }
    expect(await page.getByRole("navigation").count()).toBe(0);
    expect(sent.filter((one) => one.includes("token="))).toEqual([]);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await seriousFindings(page)).toEqual([]);
    }
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);

    // A session that ends is opened again, by the link alone.
    const before = (await admin(service.http, "GET", "/sessions")).sessions as { id: string; name: string }[];
    const own = before.find(({ name }) => name === "lobby")!;
    await admin(service.http, "DELETE", `/sessions/${own.id}`);
    const opened = async (): Promise<number> => {
      const { sessions } = await admin(service.http, "GET", "/sessions");
      return (sessions as typeof before).filter(({ name, id }) => name === "lobby" && id !== own.id).length;
    };
    // The page looks at its session every five seconds.
    await expect.poll(opened, { timeout: 20_000 }).toBe(1);
    await page.getByText("Busiest rules").waitFor();

    await redis.kill();
    await check(service.http, { user: "steady" });
    await page.getByText(/The store has not answered since/).waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);
    expect(await seriousFindings(page)).toEqual([]);
    expect(screen.complaints).toEqual([]);
  });

  test("a link with more than a viewer's token, or an unknown one, shows nothing and leaves no session", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    const editor = await makeToken(service.http, "ed", "editor");
    for (const [token, reason] of [
      [editor, "its token has the role editor, and links are for viewers"],
      ["not-a-token", "token: not known here"],
    ] as const) {
      await using screen = await open(browser, { at: service.http, path: `/wall#token=${token}` });
      await screen.page.getByText("This link shows nothing.").waitFor();
      await screen.page.getByText(reason).waitFor();
      expect(await seriousFindings(screen.page)).toEqual([]);
      // The session's query reads on: nothing that was refused comes back.
      expect((await screen.context.cookies()).filter(({ value }) => value !== "")).toEqual([]);
    }
    // A token that is deleted while its screen is on.
    {
      const token = await makeToken(service.http, "hall", "viewer");
      await using screen = await open(browser, { at: service.http, path: `/wall#token=${token}` });
      await screen.page.getByText("Busiest rules").waitFor();
      await admin(service.http, "DELETE", "/tokens/hall");
      await screen.page.getByText("This link shows nothing.").waitFor();
      expect(await screen.page.getByText("Busiest rules").count()).toBe(0);
    }
    // Whoever is signed in already stays who they are.
    await using person = await open(browser, { at: service.http, token: ADMIN });
    await person.page.goto(`/wall#token=${await makeToken(service.http, "view", "viewer")}`);
    await person.page.getByText("Busiest rules").waitFor();
    await person.page.goto("/tokens");
    await person.page.getByRole("button", { name: "New token" }).waitFor();
  });

  test("every panel of the Grafana dashboard opens the page of the console that shows the same, at the same time", async () => {
    const text = readFileSync(new URL("../../deploy/grafana/sluice.json", import.meta.url), "utf8");
    const { panels } = JSON.parse(text) as { panels: readonly GrafanaPanel[] };
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    const token = await makeToken(service.http, "v", "viewer");
    await using person = await open(browser, { at: service.http, token });
    const { page } = person;
    // As Grafana fills links in: variables of the dashboard, the shown time, labels of the series.
    const filled = (url: string): string =>
      url
        .replace(/\$\{console:raw\}/, service.http)
        .replace(/\$\{__from:date:iso\}/, new Date(Date.UTC(2026, 5, 1, 12)).toISOString())
        .replace(/\$\{__to:date:iso\}/, new Date(Date.UTC(2026, 5, 1, 13)).toISOString())
        .replace(/\$\{__field\.labels\.rule\}/, "starter-per-user");
    const opened = new Map<string, string>();
    for (const panel of panels) {
      const urls = [...(panel.links ?? []), ...(panel.fieldConfig.defaults.links ?? [])].map(({ url }) => filled(url));
      expect(urls, panel.title).toHaveLength(2);
      // A series of a rule leads to that rule.
      const isByRule = panel.targets.some(({ expr }) => /\bby \(rule/.test(expr));
      expect(urls[1]!.includes("/rules/starter-per-user?"), panel.title).toBe(isByRule);
      for (const url of urls) opened.set(url, panel.title);
    }
    const headings: string[] = [];
    for (const [url, title] of opened) {
      expect(url, title).not.toContain("$");
      await page.goto(url);
      headings.push(await page.getByRole("heading", { level: 1 }).innerText());
      if (url.includes("from=")) expect(await page.getByLabel("Time", { exact: true }).inputValue()).toBe("custom");
    }
    expect(headings.sort()).toEqual(["History", "Overview", "Rules", "Store", "starter-per-user"]);
    expect(person.complaints).toEqual([]);
  });
});
