/**
 * 5 000 rules with traffic and 100 000 keys in the console: no frame draws more than a screenful of rows, and what is typed draws none.
 * Rows are counted; the page's long frames are printed only, since another program on the machine may cause them. `npm run frames` prints
 * them too.
 */
import type { Rule } from "sluice";
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { postJson } from "../service/running-service.js";
import { admin, type OpenConsole, openConsole } from "./console.js";

const RULES = 5_000;
const KEYS = 100_000;
/** Each with more checks than the table of the busiest keys may err by. */
const BUSY_KEYS = 250;
const CHECKS_OF_BUSY = 160;
const A_SCREENFUL = 20;

const rules: Rule[] = Array.from({ length: RULES }, (_, i) => ({
  id: `rule-${String(i).padStart(4, "0")}`,
  description: `Limit number ${i} of team ${i % 17}`,
  match: { part: `part-${i}` },
  key: ["user"],
  algorithm: "fixed-window",
  limit: RULES - i,
  window: "1m",
}));

async function sendChecks(at: string, total: number, attributesOf: (n: number) => object): Promise<void> {
  for (let from = 0; from < total; from += 1_000) {
    const requests = Array.from({ length: 1_000 }, (_, i) => ({ attributes: attributesOf(from + i) }));
    const { status } = await postJson(`${at}/v1/check/batch`, { requests });
    if (status !== 200) throw new Error(`the batch was answered ${status}`);
  }
}

interface Seen {
  /** Rows that were added at once, for each time. */
  readonly added: number[];
  readonly framesMs: number[];
}

describe.skipIf(whyMissing("chromium"))("5 000 rules and 100 000 keys", () => {
  let { page, person } = {} as OpenConsole;
  beforeAll(async () => {
    const opened = await openConsole({
      path: "/audit",
      prepare: async (at) => {
        await admin(at, "PUT", "/rules", { rules });
        await sendChecks(at, KEYS, (n) => ({ part: `part-${n % RULES}`, user: `user-${n}` }));
        await sendChecks(at, BUSY_KEYS * CHECKS_OF_BUSY, (n) => ({ part: "part-1", user: `busy-${n % BUSY_KEYS}` }));
      },
    });
    ({ page, person } = opened);
    await page.evaluate(`
      window.seen = { added: [], framesMs: [] };
      new MutationObserver((changes) => {
        const nodes = changes.flatMap((change) => [...change.addedNodes]).filter((node) => node.nodeType === 1);
        const rows = nodes.flatMap((node) => (node.matches("tbody tr") ? [node] : [...node.querySelectorAll("tbody tr")]));
        if (rows.length > 0) seen.added.push(new Set(rows).size);
      }).observe(document.body, { childList: true, subtree: true });
      new PerformanceObserver((list) => seen.framesMs.push(...list.getEntries().map(({ duration }) => duration)))
        .observe({ type: "long-animation-frame" });
    `);
    return opened.close;
  }, 180_000);

  const rowCount = () => page.locator("tbody tr").count();

  /** What was drawn since the last look. */
  async function look(what: string): Promise<Seen> {
    const seen: Seen = await page.evaluate(
      "(() => { const was = seen; seen = { added: [], framesMs: [] }; return was; })()",
    );
    const over = seen.framesMs.filter((ms) => ms > 100).map(Math.round);
    console.log(
      `${what}: rows by the frame ${seen.added.join(" ")}; the longest frame ${Math.round(Math.max(0, ...seen.framesMs))} ms, over 100 ms: ${over.join(" ") || "none"}`,
    );
    expect(Math.max(0, ...seen.added), what).toBeLessThanOrEqual(A_SCREENFUL);
    return seen;
  }

  test("a list of rules is drawn by the screenful, and what is typed redraws no row", async () => {
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await page.getByText("1 to 100 of 5,000").waitFor();
    await page.getByText("20 allowed").first().waitFor();
    await expect.poll(rowCount, { timeout: 15_000 }).toBe(100);
    await look("the list opens");
    await page.getByLabel("Rules a page").selectOption("250");
    await page.getByText("1 to 250 of 5,000").waitFor();
    await expect.poll(rowCount, { timeout: 15_000 }).toBe(250);
    await look("250 a page");
    for (let i = 0; i < 30; i++) await page.mouse.wheel(0, 600);
    expect((await look("scrolling")).added).toEqual([]);
    // All rules have it: the rows stay.
    await page.getByLabel("Search rules").pressSequentially("limit");
    await page.waitForURL(/q=limit/);
    expect((await look("typing")).added).toEqual([]);
    await page.getByLabel("Search rules").fill("part-49");
    await page.getByText("1 to 111 of 111").waitFor();
    await expect.poll(rowCount, { timeout: 15_000 }).toBe(111);
    await look("searching");
    await page.getByLabel("Search rules").fill("");
    await expect.poll(rowCount, { timeout: 15_000 }).toBe(250);
    await look("clearing the search");
    await page.getByRole("button", { name: "Limit", exact: true }).click();
    await page.locator("tbody tr").first().getByText("rule-4999").waitFor();
    await expect.poll(rowCount, { timeout: 15_000 }).toBe(250);
    // The button that was pressed keeps the focus.
    expect(await page.evaluate("document.activeElement.textContent")).toContain("Limit");
    await look("sorting");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("rule-49");
    await page.getByRole("option", { name: /rule-4900/ }).waitFor();
    await page.keyboard.press("Escape");
    expect((await look("the palette")).added).toEqual([]);
    // All that is on the page, whatever its size: 250 rows of some 30 elements.
    expect(await page.locator("*").count()).toBeLessThan(9_000);
  });

  test("a list of keys is drawn by the screenful", async () => {
    await page.getByRole("link", { name: "Top keys" }).click();
    await page.getByText("1 to 100").waitFor();
    await expect.poll(rowCount, { timeout: 15_000 }).toBe(100);
    await look("top keys");
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("101 to 200").waitFor();
    await expect.poll(rowCount, { timeout: 15_000 }).toBe(100);
    await look("the next page");
    await page.getByLabel("Search keys").fill("busy-24");
    await page.getByRole("row", { name: /busy-249/ }).waitFor();
    await look("searching keys");
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByText("Busiest rules").waitFor();
    await look("the overview");
    expect(person.complaints).toEqual([]);
  });
});
