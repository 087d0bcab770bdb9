/**
 * 5 000 rules with traffic, 100 000 keys, 1 000 blocked keys and 500 alerts in the console: no frame draws more than a screenful of rows,
 * what is typed draws none, and a dialog costs what is in sight. Rows and elements are counted; the page's long frames are printed only,
 * since another program on the machine may cause them. `npm run frames` prints them too.
 *
 * The page is driven by keys, the mouse and plain selectors: Playwright's roles and names are computed in the page, for every element of
 * it, and would be the longest frames of all.
 */
import type { Rule } from "sluice";
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { postJson } from "../service/running-service.js";
import { ADMIN, admin, type OpenConsole, open, openConsole, startBrowser } from "./console.js";
import { countStyled } from "./count-styled.js";
import { type FrameWatch, watchFrames } from "./frame-watch.js";

const RULES = 5_000;
const KEYS = 100_000;
/** Each with more checks than the table of the busiest keys may err by. */
const BUSY_KEYS = 250;
const CHECKS_OF_BUSY = 160;
const BLOCKED = 1_000;
const ALERTS = 500;
const A_SCREENFUL = 20;
/** The frame, a screen of rows and as many above and below it; 250 rows have some 4 000. */
const ELEMENTS_IN_SIGHT = 1_500;

const rules: Rule[] = Array.from({ length: RULES }, (_, i) => ({
  id: `rule-${String(i).padStart(4, "0")}`,
  description: `Limit number ${i} of team ${i % 17}`,
  match: { part: `part-${i}` },
  key: ["user"],
  algorithm: "fixed-window",
  limit: RULES - i,
  window: "1m",
  ...(i === 0 && { blockFor: "1h" }),
}));

async function sendChecks(at: string, total: number, attributesOf: (n: number) => object): Promise<void> {
  for (let from = 0; from < total; from += 1_000) {
    const requests = Array.from({ length: 1_000 }, (_, i) => ({ attributes: attributesOf(from + i) }));
    const { status } = await postJson(`${at}/v1/check/batch`, { requests });
    if (status !== 200) throw new Error(`the batch was answered ${status}`);
  }
}

async function blockKeys(at: string): Promise<void> {
  for (let from = 0; from < BLOCKED; from += 50) {
    const users = Array.from({ length: 50 }, (_, i) => ({ part: "part-0", user: `blocked-${from + i}` }));
    await Promise.all(
      users.map((attributes) => admin(at, "POST", "/keys/block", { rule: "rule-0000", attributes, for: "1h" })),
    );
  }
}

/** As many as the service keeps, which takes it days to find. */
function manyAlerts(): object {
  const atMs = Date.now();
  const alerts = Array.from({ length: ALERTS }, (_, i) => ({
    id: `alert-${i}`,
    kind: "unusual-rate",
    rule: rules[i]!.id,
    state: i < 50 ? "firing" : "resolved",
    severity: "warning",
    summary: `The rate of ${rules[i]!.id} is 12 times as high as usual: 480 a second, where 40 were expected.`,
    startedAtMs: atMs - 3_600_000 - i * 60_000,
    ...(i >= 50 && { endedAtMs: atMs - i * 60_000 }),
  }));
  return { atMs, scope: "fleet", alerts, webhooks: [], receivers: [] };
}

describe.skipIf(whyMissing("chromium"))("5 000 rules and 100 000 keys", () => {
  let { page, person, browser, service } = {} as OpenConsole;
  let watch: FrameWatch;
  beforeAll(async () => {
    const opened = await openConsole({
      path: "/audit",
      prepare: async (at) => {
        await admin(at, "PUT", "/rules", { rules });
        await sendChecks(at, KEYS, (n) => ({ part: `part-${n % RULES}`, user: `user-${n}` }));
        await sendChecks(at, BUSY_KEYS * CHECKS_OF_BUSY, (n) => ({ part: "part-1", user: `busy-${n % BUSY_KEYS}` }));
        await blockKeys(at);
      },
    });
    ({ page, person, browser, service } = opened);
    await page.route("**/admin/v1/alerts", (route) => route.fulfill({ json: manyAlerts() }));
    watch = await watchFrames(page);
    return opened.close;
  }, 180_000);

  const go = (name: string) => watch.click(`nav a:text-is("${name}"), nav a:text-matches("^${name}\\\\d")`);
  const rows = (count: number) => watch.until(`document.querySelectorAll("tbody tr").length === ${count}`);
  const shows = (selector: string, text: string) =>
    watch.until(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].some((one) => one.textContent.includes(${JSON.stringify(text)}))`,
    );
  const choose = (selector: string, value: string) => page.locator(selector).selectOption(value);

  /** What was drawn since the last look. */
  async function look(what: string): Promise<readonly number[]> {
    const { added } = await watch.look(what);
    expect(Math.max(0, ...added), what).toBeLessThanOrEqual(A_SCREENFUL);
    return added;
  }

  test("a list of rules is drawn by the screenful, and what is typed redraws no row", async () => {
    await go("Rules");
    await shows(".pager", "1 to 100 of 5,000");
    await shows("tbody td", "20 allowed");
    await rows(100);
    await look("the list opens");
    await choose(".pager select", "250");
    await shows(".pager", "1 to 250 of 5,000");
    await rows(250);
    await look("250 a page");
    await page.mouse.move(700, 500);
    for (let i = 0; i < 30; i++) await page.mouse.wheel(0, 600);
    for (let i = 0; i < 30; i++) await page.mouse.wheel(0, -600);
    expect(await look("scrolling down and up")).toEqual([]);
    // All rules have it: the rows stay.
    await page.locator("main input[type=search]").focus();
    await page.keyboard.type("limit");
    await page.waitForURL(/q=limit/);
    expect(await look("typing")).toEqual([]);
    await page.locator("main input[type=search]").selectText();
    await page.keyboard.type("part-49");
    await shows(".pager", "1 to 111 of 111");
    await rows(111);
    await look("searching");
    await page.locator("main input[type=search]").selectText();
    await page.keyboard.press("Delete");
    await rows(250);
    await look("clearing the search");
    await watch.click("th .sort:text('Limit')");
    await shows("tbody tr:first-child", "rule-4999");
    await rows(250);
    // The button that was pressed keeps the focus.
    expect(await page.evaluate("document.activeElement.textContent")).toContain("Limit");
    await look("sorting");
    await choose(".time-bar select >> nth=0", "15m");
    await page.waitForURL(/range=15m/);
    expect(await look("another range")).toEqual([]);
  });

  test("250 rules are chosen at once, and a dialog styles the rows in sight alone", async () => {
    await watch.click("thead input");
    await shows(".bulk", "250 rules chosen");
    expect(await look("choosing 250 rules")).toEqual([]);
    const styled = await countStyled(browser, page, async () => {
      await watch.click(".bulk button:text('Tag')");
      await shows("dialog h2", "Tag 250 rules");
    });
    console.log(`a dialog over 250 rows: ${styled} elements styled`);
    expect(styled).toBeLessThan(ELEMENTS_IN_SIGHT);
    await look("a dialog over 250 rows");
    await page.keyboard.press("Escape");
    await watch.until("document.querySelector('dialog') === null");
    await look("closing the dialog");
    await watch.click(".bulk button:text('Choose none')");
    await watch.until("document.querySelector('.bulk') === null");
    expect(await look("choosing none")).toEqual([]);
    await page.keyboard.press("Control+k");
    await watch.until("document.querySelector('[role=combobox]') !== null");
    await look("the palette opens");
    await page.keyboard.type("rule-49");
    await shows("[role=option]", "rule-4900");
    await look("typing in the palette");
    await page.keyboard.press("Escape");
    await watch.until("document.querySelector('dialog') === null");
    expect(await look("the palette closes")).toEqual([]);
  });

  test("a list of keys is drawn by the screenful", async () => {
    await go("Top keys");
    await shows(".pager", "1 to 100");
    await rows(100);
    await look("top keys");
    await watch.click(".pager button:text('Next')");
    await shows(".pager", "101 to 200");
    await rows(100);
    await look("the next page");
    await page.locator("main input[type=search]").focus();
    await page.keyboard.type("busy-24");
    await shows("tbody tr", "busy-249");
    await look("searching keys");
    await choose(".time-bar select >> nth=0", "1h");
    await page.waitForURL(/range=1h/);
    await look("another range of keys");
  });

  test("blocked keys, alerts and the audit are drawn by the screenful", async () => {
    await go("Explain a key");
    await shows("h2", "Blocked now");
    await rows(250);
    await look("250 of 1 000 blocked keys");
    await watch.click(".pager button:text('Next')");
    await shows(".pager", `251 to 500 of ${BLOCKED.toLocaleString("en")}`);
    await rows(250);
    await look("the next 250 of them");
    await go("Alerts");
    await rows(ALERTS);
    await look("500 alerts");
    await watch.click(".choice label:text('Resolved')");
    await rows(ALERTS - 50);
    await look("resolved alerts");
    await page.mouse.move(700, 500);
    for (let i = 0; i < 20; i++) await page.mouse.wheel(0, 900);
    expect(await look("scrolling alerts")).toEqual([]);
    await go("Audit");
    await rows(50);
    await look("the audit");
    await page.locator("main input[type=search]").first().focus();
    await page.keyboard.type("first");
    await page.waitForURL(/author=first/);
    await look("filtering the audit");
    await go("Overview");
    await shows("h2", "Busiest rules");
    await watch.until("document.querySelectorAll('.uplot').length > 0");
    await look("the overview");
    await choose(".time-bar select >> nth=0", "15m");
    await page.waitForURL(/range=15m/);
    await look("another range of the overview");
    expect(person.complaints).toEqual([]);
  });

  test("rows out of sight are not laid out, and screen readers and a search of the page find them all the same", async () => {
    // The flag stands for a screen reader: its presence turns the whole tree on.
    await using reading = await startBrowser(["--force-renderer-accessibility"]);
    await using reader = await open(reading, { at: service.http, token: ADMIN, path: "/rules?per=250" });
    await reader.page.getByText("1 to 250 of 5,000").waitFor();
    await expect.poll(() => reader.page.locator("tbody tr").count(), { timeout: 60_000 }).toBe(250);
    const cdp = await reader.context.newCDPSession(reader.page);
    const { nodes } = await cdp.send("Accessibility.getFullAXTree");
    const roles = nodes.filter(({ ignored }) => !ignored).map(({ role }) => role?.value);
    const counted = (wanted: string) => roles.filter((role) => role === wanted).length;
    expect(counted("row")).toBe(251);
    expect(counted("columnheader")).toBe(6);
    expect(counted("rowheader")).toBe(250);
    expect(counted("cell")).toBe(250 * 5);
    expect(await reader.page.evaluate("window.find('rule-0249')")).toBe(true);
    expect(await reader.page.evaluate("scrollY")).toBeGreaterThan(5_000);
  });
});
