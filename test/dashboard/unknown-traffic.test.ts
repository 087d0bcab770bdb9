/** Traffic that nobody counted, and rules beyond the thousand that are counted one by one: unknown is neither 0 nor "no traffic". */
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { admin, type OpenConsole, openConsole } from "./console.js";
import { pastTraffic } from "./past-traffic.js";

const rule = { id: "api", key: ["user"], algorithm: "fixed-window", limit: 100, window: "1m" };
const nowMs = Date.now();

describe.skipIf(whyMissing("chromium"))("in a browser", () => {
  let { page, person } = {} as OpenConsole;
  beforeAll(async () => {
    const opened = await openConsole({
      // As a service with more than a thousand rules keeps it.
      start: { files: { "monitoring-history": pastTraffic({ nowMs, rule: "(other)" }) } },
      prepare: (at) => admin(at, "PUT", "/rules", { rules: [rule] }),
    });
    ({ page, person } = opened);
    return opened.close;
  });

  test("a time that nobody counted has no figures", async () => {
    const day = (ago: number): string => new Date(nowMs - ago * 86_400_000).toISOString();
    await page.goto(`/?from=${day(20)}&to=${day(19)}`);
    await page.getByText("Nothing was counted in this time.").waitFor();
    for (const name of ["Allowed", "Refused", "Shadow-refused", "By failure policy"]) {
      const figure = page.locator(".figure", { has: page.getByText(name, { exact: true }) });
      expect((await figure.locator("dd").innerText()).trim(), name).toBe("–");
    }
    expect(await page.getByText(/^No checks/).count()).toBe(0);
    expect(person.complaints).toEqual([]);
  });

  test("a rule that is not counted one by one is not called quiet", async () => {
    await page.goto("/rules?range=6h");
    const row = page.getByRole("row", { name: /api/ });
    await row.getByText("unknown").waitFor();
    await row.getByRole("link", { name: "api" }).click();
    await page.getByText("this one's is unknown").waitFor();
    const figure = page.locator(".figure", { has: page.getByText("Allowed", { exact: true }) });
    expect((await figure.locator("dd").innerText()).trim()).toBe("–");
    expect(await page.getByText("No traffic in this time.").count()).toBe(0);
    await page.goto("/?range=6h");
    await page.getByText("rules that are counted together").waitFor();
    expect(await page.locator('a[href^="/rules/("]').count()).toBe(0);
    expect(person.complaints).toEqual([]);
  });
});
