/** The console by keyboard: the command palette, `/`, `?`; a mistyped address; a wide screen. */
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { allFindings, seriousFindings } from "./axe.js";
import { admin, check, type OpenConsole, openConsole } from "./console.js";

const rule = { key: ["user"], algorithm: "fixed-window", limit: 100, window: "1m" };

describe.skipIf(whyMissing("chromium"))("hands", () => {
  let { page, person, service } = {} as OpenConsole;
  beforeAll(async () => {
    const described = { id: "login", description: "Guesses of passwords", ...rule };
    const opened = await openConsole({
      width: 1920,
      prepare: async (at) => {
        await admin(at, "PUT", "/rules", { rules: [described, { id: "export", ...rule }] });
        await check(at, { user: "ann-of-this-test" });
      },
    });
    ({ page, person, service } = opened);
    return opened.close;
  });

  const box = () => page.getByRole("combobox", { name: "A page, a rule or a key" });
  const option = (name: string) => page.getByRole("option", { name });

  test("Ctrl-K leads to a page, a rule by its description, and a key, with the focus on the page that opens", async () => {
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await page.keyboard.press("Control+k");
    await box().fill("regi");
    await option("Regions").waitFor();
    expect(await allFindings(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/regions$/);
    await page.locator("h1:focus").getByText("Regions").waitFor();

    await page.keyboard.press("Meta+k");
    await box().fill("passwords");
    await option("login").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/rules\/login$/);
    await page.getByRole("heading", { name: "login", level: 1 }).waitFor();

    await page.getByRole("button", { name: "Go to …" }).click();
    await box().fill("ann-of");
    await option("user=ann-of-this-test").click();
    await page.waitForURL(/\/keys\?user=ann-of-this-test$/);

    await page.keyboard.press("Control+k");
    await box().fill("user=bob");
    await option("user=bob").waitFor();
    await box().fill("user=bob none");
    await page.getByText("Nothing of that name.").waitFor();
    expect(await allFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await box().waitFor({ state: "detached" });
  });

  test("arrows choose, round the ends too", async () => {
    await page.goto("/history");
    await page.getByRole("heading", { name: "History", level: 1 }).waitFor();
    await page.keyboard.press("Control+k");
    await option("Overview").waitFor();
    const chosen = () => page.locator("[role=option][aria-selected=true]").first().innerText();
    await page.keyboard.press("ArrowDown");
    expect(await chosen()).toContain("Top keys");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp");
    expect(await page.locator("[role=option]").last().getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("Escape");
  });

  test("a slash goes to the page's search and is text there; a question mark lists the keys", async () => {
    await page.goto("/rules");
    const search = page.getByLabel("Search rules");
    await search.waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("/?");
    expect(await search.inputValue()).toBe("/?");
    await search.fill("");
    await search.blur();
    await page.keyboard.press("?");
    const list = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await list.getByText("Go to a page, a rule or a key").waitFor();
    expect(await allFindings(page)).toEqual([]);
    await page.keyboard.press("Control+k");
    expect(await page.getByRole("dialog").count()).toBe(1);
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "detached" });
  });

  test("a mistyped address is answered by the console, with a way on", async () => {
    const answer = await page.goto("/ruels?x=1");
    expect(answer!.status()).toBe(404);
    await page.getByText("There is no page of this name.").waitFor();
    await page.getByText("/ruels", { exact: true }).waitFor();
    expect(await allFindings(page)).toEqual([]);
    await page.getByRole("link", { name: "Open the overview" }).click();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  });

  test("a table uses a screen of 1920 px", async () => {
    await page.goto("/rules");
    const table = page.getByRole("table");
    await table.waitFor();
    expect((await table.boundingBox())!.width).toBeGreaterThan(1_500);
    expect(person.complaints).toEqual([]);
  });

  test("a save tells what it means, and Undo takes it back", async () => {
    await page.goto("/rules/export");
    await page.getByLabel("Limit", { exact: true }).fill("50");
    await page.getByRole("button", { name: "Review and save" }).click();
    const dialog = page.getByRole("dialog", { name: "Save export" });
    await dialog.getByText("the rule login limits the same requests by the same key to 100 in 1m").waitFor();
    await dialog.getByText("This service records no traffic").waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save rule" }).click();
    await page.getByText("Saved, and in force as version 3.").waitFor();
    await page.getByRole("button", { name: "Undo", exact: true }).click();
    await page.getByText("Undone: the rules are those of version 2 again, as version 4.").waitFor();
    expect((await admin(service.http, "GET", "/rules/export")).limit).toBe(100);
    await page.locator('input[value="100"]').first().waitFor();
    await page.getByLabel("Counted by").fill("user, path");
    await page.getByRole("button", { name: "Review and save" }).click();
    await dialog.getByText(/counters begin anew/i).waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Undo all" }).click();
  });

  test("top keys compare with the span before under its own name, and with no week before", async () => {
    await page.goto("/top-keys?compare=week");
    const compare = page.getByLabel("Compare with");
    await compare.waitFor();
    expect(await compare.inputValue()).toBe("");
    await compare.selectOption("The span before");
    await page.waitForURL(/compare=span/);
    await page.getByRole("columnheader", { name: "Before" }).waitFor();
  });
});
