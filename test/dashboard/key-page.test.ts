/** The page of one key: traffic by rule, last refusals, the override that hits it, and what an editor does from there; top keys by client. */
import type { Browser, Page } from "playwright-core";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RunningService, startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, admin, check, makeToken, open, type Person, startBrowser } from "./console.js";

const rules: Rule[] = [
  { id: "login", key: ["user"], algorithm: "fixed-window", limit: 5, window: "1h", blockFor: ["1h"] },
  {
    id: "api",
    key: ["user"],
    algorithm: "token-bucket",
    limit: 1_000,
    window: "1h",
    overrides: [{ match: { user: "ann" }, limit: 2_000 }],
  },
];

async function until<T>(read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  for (let i = 0; i < 150; i++) {
    const value = await read();
    if (holds(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error("not within 30 s");
}

describe.skipIf(whyMissing("chromium"))("the page of a key", () => {
  let browser: Browser;
  let service: RunningService;
  let person: Person;
  let page: Page;
  const history = (attributes: object) => admin(service.http, "POST", "/keys/history", { attributes });

  beforeAll(async () => {
    [browser, service] = await Promise.all([startBrowser(), startTestService({ settings: { "admin-token": ADMIN } })]);
    await admin(service.http, "PUT", "/rules", { rules });
    // The block begins with the sixth; what comes after it is refused for that.
    for (let i = 0; i < 8; i++) await check(service.http, { user: "ann", path: `/login/${i}` });
    for (let i = 0; i < 130; i++) await check(service.http, { user: `user-${i}` });
    await until(
      () => history({ user: "ann" }),
      ({ rules: counted, refusals }) => counted.length === 2 && refusals.length > 0,
    );
    person = await open(browser, { at: service.http, token: ADMIN, path: "/top-keys?range=1h" });
    page = person.page;
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  test("a client is one row however many rules count it, and the list goes on beyond a hundred", async () => {
    // The table is written every few seconds: the first may lack clients that came after it.
    await page.getByText("1 to 100").waitFor();
    const first = page.locator("tbody tr").first();
    await first.getByText("ann").waitFor();
    expect((await first.locator("td").nth(1).getByRole("link").allInnerTexts()).sort()).toEqual(["api", "login"]);
    // A screenful at first, the rest by the frame.
    await expect.poll(() => page.locator("tbody tr").count(), { timeout: 60_000 }).toBe(100);
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("101 to 131").waitFor();
    await page.goBack();
    await page.getByText("1 to 100").waitFor();
    await page.getByLabel("Compare with").selectOption("span");
    await page.getByText("not listed").first().waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    const byRule = await admin(service.http, "GET", "/keys/top?limit=500");
    expect(byRule.keys).toHaveLength(262);
    expect([byRule.more, byRule.keys[0].rules]).toEqual([false, undefined]);
  });

  test("shows traffic by rule, the override in force, and the last refusals with their attributes", async () => {
    await page.locator("tbody tr").first().getByRole("link", { name: "ann" }).click();
    await page.getByRole("img", { name: /^Checks of this key/ }).waitFor();
    await page.getByText("2000 in 1h instead of 1000 in 1h").waitFor();
    const refusal = page.locator("section", { hasText: "Last refusals" }).getByRole("row", { name: /login/ }).first();
    expect(await refusal.innerText()).toMatch(/limit|blocked/);
    expect(await refusal.innerText()).toContain("/login/");
    expect(await seriousFindings(page)).toEqual([]);
  });

  test("an editor unblocks, blocks and gives the key a limit of its own, without leaving the page", async () => {
    const login = page.locator("li.matched", { hasText: "login" });
    await login.getByRole("button", { name: "Unblock login" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Reset the key" }).click();
    await login.getByRole("button", { name: "Reset login" }).waitFor();
    expect((await check(service.http, { user: "ann" })).allowed).toBe(true);
    await login.getByRole("button", { name: "Block under login" }).click();
    await page.getByLabel("For", { exact: true }).fill("soon");
    await page.getByRole("button", { name: "Block the key" }).click();
    await page.getByText(/for: expected a duration/).waitFor();
    await page.getByLabel("For", { exact: true }).fill("10m");
    await page.getByRole("button", { name: "Block the key" }).click();
    await login.getByRole("button", { name: "Unblock login" }).waitFor();
    expect((await check(service.http, { user: "ann" })).reason).toBe("blocked");
    await login.getByRole("button", { name: "Add override to login" }).click();
    await page.getByLabel("Limit", { exact: true }).fill("50");
    await page.getByRole("button", { name: "Review" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Add override" }).click();
    await page.getByText("50 in 1h instead of 5 in 1h").waitFor();
    expect(service.rules[0]?.overrides).toEqual([{ match: { user: "ann" }, limit: 50 }]);
    expect(person.complaints).toEqual([]);
  });

  test("a viewer sees it all, and changes nothing", async () => {
    const token = await makeToken(service.http, "v", "viewer");
    await using viewer = await open(browser, { at: service.http, token, path: "/keys?user=ann", width: 390 });
    await viewer.page.getByText("Last refusals").waitFor();
    for (const name of ["Reset", "Unblock", "Block under", "Add override"]) {
      expect(await viewer.page.getByRole("button", { name }).count()).toBe(0);
    }
  });

  test("with hidden values the log names attributes, and no value of them", async () => {
    await using hidden = await startTestService({ settings: { "admin-token": ADMIN, "refusal-log": "hidden" } });
    await admin(hidden.http, "PUT", "/rules", { rules });
    for (let i = 0; i < 8; i++) await check(hidden.http, { user: "ann", path: "/secret" });
    const { refusals, refusalValues } = await until(
      () => admin(hidden.http, "POST", "/keys/history", { attributes: { user: "ann" } }),
      (view) => view.refusals.length > 0,
    );
    expect(refusalValues).toBe("hidden");
    expect(refusals[0].attributes).toEqual({ user: "", path: "" });
    await using reader = await open(browser, { at: hidden.http, token: ADMIN, path: "/keys?user=ann" });
    await reader.page.getByText("Values are hidden by a setting.").waitFor();
    expect(await reader.page.locator("main").innerText()).not.toContain("/secret");
  });
});
