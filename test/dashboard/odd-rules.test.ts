/** Rules and keys at the edges: a limit of 0, windows of months, keys that read as patterns, keys too long to be kept. */
import type { Rule } from "sluice";
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { admin, check, type OpenConsole, openConsole } from "./console.js";

const match = (path: string): { match: { path: string } } => ({ match: { path } });
const rules: Rule[] = [
  { id: "denied", ...match("/denied"), key: ["user"], algorithm: "fixed-window", limit: 0, window: "1h" },
  { id: "yearly", ...match("/yearly"), key: ["user"], algorithm: "rolling-window", limit: 1, window: "400d" },
  { id: "hourly", ...match("/hourly"), key: ["user"], algorithm: "rolling-window", limit: 1, window: "1h" },
  {
    id: "tokens",
    ...match("/tokens"),
    key: ["user"],
    algorithm: "fixed-window",
    limit: 1_000,
    window: "1h",
    unit: "tokens",
  },
];
const long = [1, 2].map((end) => `${"z".repeat(600)}${end}`);

describe.skipIf(whyMissing("chromium"))("in a browser", () => {
  let { page, person, service } = {} as OpenConsole;
  beforeAll(async () => {
    const opened = await openConsole({
      prepare: async (at) => {
        await admin(at, "PUT", "/rules", { rules });
        for (const path of ["/denied", "/yearly", "/hourly"]) await check(at, { user: "*", path });
        for (const user of long) await check(at, { user, path: "/tokens" });
      },
    });
    ({ page, person, service } = opened);
    return opened.close;
  });

  const passesNext = (rule: string) =>
    page.locator("li.matched", { hasText: rule }).getByText("Passes next").locator("xpath=following-sibling::dd[1]");

  test("a key's next turn is never under a limit of 0, and has its date beyond half a day", async () => {
    await page.goto("/keys?user=*&path=/denied");
    await page.getByText(/No wait helps\./).waitFor();
    expect(await passesNext("denied").innerText()).toBe("never: no wait helps");
    await page.goto("/keys?user=*&path=/yearly");
    expect(await passesNext("yearly").innerText()).toMatch(/^on \d+ \w+ 20\d\d, \d\d:\d\d$/);
    await page.getByText(/It passes in \d+ h if nothing else comes/).waitFor();
    await page.goto("/keys?user=*&path=/hourly");
    expect(await passesNext("hourly").innerText()).toMatch(/^at \d\d:\d\d:\d\d$/);
  });

  test("a key that a match would read as a pattern gets no override", async () => {
    await page.goto("/keys?user=*&path=/hourly");
    await page.getByRole("button", { name: "Add override to hourly" }).click();
    await page.getByText("In an override this user would stand for other keys too.").waitFor();
    expect(await page.getByRole("button", { name: "Review" }).isDisabled()).toBe(true);
    await page.getByLabel("Limit", { exact: true }).press("Enter");
    expect(await page.getByRole("button", { name: "Review" }).count()).toBe(1);
    await page.keyboard.press("Escape");
    await page.goto("/keys?user=ann&path=/hourly");
    await page.getByRole("button", { name: "Add override to hourly" }).click();
    expect(await page.getByRole("button", { name: "Review" }).isDisabled()).toBe(false);
    await page.keyboard.press("Escape");
    expect(service.rules.some(({ overrides }) => overrides !== undefined)).toBe(false);
  });

  test("spenders and found keys that are too long to be kept lead to no other key", async () => {
    await page.goto("/spend");
    const rows = page.locator("section", { hasText: "Top spenders" }).locator("tbody tr");
    await expect.poll(() => rows.count(), { timeout: 20_000 }).toBe(2);
    expect(await page.locator("a.key-link").count()).toBe(0);
    await page.keyboard.press("Control+k");
    await page.getByLabel("A page, a rule or a key").fill("zzzz");
    await page.getByText("Nothing of that name.").waitFor();
    expect(person.complaints).toEqual([]);
  });
});
