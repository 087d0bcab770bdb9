/** A working day in the dashboard, in a real Chromium against the real service. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RunningService, startTestService } from "../service/running-service.js";
import { ADMIN, admin, check, makeToken, open, type Person, startBrowser, startTraffic } from "./console.js";

describe.skipIf(whyMissing("chromium"))("in a browser", () => {
  let browser: Browser;
  let service: RunningService;
  let editor: Person;
  beforeAll(async () => {
    [browser, service] = await Promise.all([startBrowser(), startTestService({ settings: { "admin-token": ADMIN } })]);
    editor = await open(browser, { at: service.http, token: await makeToken(service.http, "ann", "editor") });
  });
  afterAll(async () => {
    await editor?.[Symbol.asyncDispose]();
    await browser?.close();
    await service?.close();
  });

  test("a wrong token is refused with words, and no page is shown", async () => {
    await using stranger = await open(browser, { at: service.http, path: "/rules" });
    const { page } = stranger;
    await page.getByLabel("Token").fill("not-a-token");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("token: not known here").waitFor();
    expect(await page.getByRole("table").count()).toBe(0);
  });

  test("a rule is made in the form, follows in the YAML, is judged while it is typed, and created after a look", async () => {
    const { page } = editor;
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await page.getByRole("link", { name: "New rule" }).click();
    await page.getByLabel("Id").fill("orders-per-user");
    await page.getByLabel("Description").fill("Orders, per user");
    await page.getByRole("button", { name: "Add attribute" }).click();
    await page.getByLabel("Applies to: attribute 1").fill("path");
    await page.getByLabel("Applies to: value 1").fill("/orders/**");
    await page.getByLabel("Window").fill("nonsense");
    const window = page.getByLabel("Window");
    await page
      .locator(".field", { has: window })
      .getByText(/expected a duration/)
      .waitFor();
    expect(await window.getAttribute("aria-invalid")).toBe("true");
    await page.getByText(/line \d+:.*window/).waitFor();
    expect(await page.getByRole("button", { name: "Review and create" }).isDisabled()).toBe(true);

    const yaml = page.getByLabel("YAML");
    await yaml.fill((await yaml.inputValue()).replace("nonsense", "1h").replace("limit: 100", "limit: 5"));
    expect(await window.inputValue()).toBe("1h");
    expect(await page.getByLabel("Limit", { exact: true }).inputValue()).toBe("5");
    await page.getByText("No mistakes.").waitFor();
    await page.getByRole("button", { name: "Review and create" }).click();
    await page.getByLabel("Reason").fill("orders had no limit");
    await page.getByRole("button", { name: "Create rule" }).click();
    await page.getByRole("heading", { name: "orders-per-user", level: 1 }).waitFor();
    expect(service.rules.find(({ id }) => id === "orders-per-user")).toEqual({
      id: "orders-per-user",
      description: "Orders, per user",
      match: { path: "/orders/**" },
      key: ["user"],
      algorithm: "rolling-window",
      limit: 5,
      window: "1h",
    });
  });

  test("refused traffic is seen in the figures and drawn on the chart", async () => {
    const { page } = editor;
    const traffic = startTraffic(service.http, { user: "greedy", path: "/orders/7" });
    try {
      await page.getByRole("link", { name: "Overview" }).click();
      const chart = page.getByRole("img", { name: /^Decisions a second; .*Refused [1-9]/ });
      await chart.waitFor();
      // The line's colour is on the canvas: it is drawn, not only told.
      await expect.poll(() => page.evaluate(refusedPixels), { timeout: 20_000, interval: 500 }).toBeGreaterThan(50);
      await page.getByRole("link", { name: "orders-per-user" }).first().waitFor();
    } finally {
      await traffic.stop();
    }
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await page
      .getByRole("row", { name: /orders-per-user/ })
      .getByRole("img", { name: /5 allowed, [1-9][\d,]* refused/ })
      .waitFor();
    await page.getByRole("link", { name: "Top keys" }).click();
    await page
      .getByRole("row", { name: /user=greedy.*orders-per-user/ })
      .first()
      .waitFor();
  });

  test("an edit shows its difference before it is saved, and is in force at once", async () => {
    const { page } = editor;
    await page.goto("/rules/orders-per-user");
    await page.getByLabel("Limit", { exact: true }).fill("8");
    await page.getByRole("button", { name: "Review and save" }).click();
    const dialog = page.getByRole("dialog", { name: "Save orders-per-user" });
    await dialog.getByText("limit", { exact: true }).waitFor();
    expect(await dialog.locator("del").textContent()).toBe("5");
    expect(await dialog.locator("ins").textContent()).toBe("8");
    await dialog.getByLabel("Reason").fill("a little more");
    await dialog.getByRole("button", { name: "Save rule" }).click();
    await page.getByText(/Saved, and in force as version \d+/).waitFor();
    expect(service.rules.find(({ id }) => id === "orders-per-user")?.limit).toBe(8);
  });

  test("of two people who edit one rule, the second is shown what the first did, and decides", async () => {
    const { page } = editor;
    await page.goto("/rules/orders-per-user");
    await page.getByLabel("Limit", { exact: true }).fill("9");
    const rule = await admin(service.http, "GET", "/rules/orders-per-user");
    await admin(service.http, "PUT", "/rules/orders-per-user", { ...rule, limit: 50 });
    await page.getByRole("button", { name: "Review and save" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Others have changed the rules meanwhile.").waitFor();
    await dialog.getByText("They changed the same as you").waitFor();
    expect(await dialog.locator("ins").textContent()).toBe("50");
    expect(await dialog.getByRole("button", { name: "Save rule" }).isDisabled()).toBe(true);
    await dialog.getByRole("button", { name: /Go on from version/ }).click();
    await dialog.locator("del", { hasText: "50" }).waitFor();
    await dialog.getByRole("button", { name: "Save rule" }).click();
    await page.getByText(/Saved, and in force/).waitFor();
    expect(service.rules.find(({ id }) => id === "orders-per-user")?.limit).toBe(9);
  });

  test("a roll back shows what it changes, and brings an old version's rules back as a new one", async () => {
    const { page } = editor;
    const before = service.rulesVersion;
    const { versions } = await admin(service.http, "GET", "/versions");
    const wanted = versions.find((one: { message: string }) => one.message === "a little more").version;
    await page.getByRole("link", { name: "History" }).click();
    await page.getByRole("button", { name: `Show changes of version ${wanted}` }).click();
    await page.locator("ins", { hasText: "8" }).waitFor();
    await page.getByRole("button", { name: `Roll back to version ${wanted}`, exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.locator("ins", { hasText: "8" }).waitFor();
    await dialog.getByLabel("Reason").fill("nine was too many");
    await dialog.getByRole("button", { name: "Roll back" }).click();
    await page.getByText(`The rules are those of version ${wanted} again, as version ${before + 1}.`).waitFor();
    expect(service.rules.find(({ id }) => id === "orders-per-user")?.limit).toBe(8);
  });

  test("a candidate stands beside the live numbers with what it would have refused, and is promoted", async () => {
    const { page } = editor;
    await page.goto("/rules/orders-per-user");
    await page.getByRole("button", { name: "Add candidate" }).click();
    const candidate = page.locator(".part", { has: page.getByRole("heading", { name: "Candidate" }) });
    await candidate.getByLabel("Limit").fill("2");
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("button", { name: "Save rule" }).click();
    await page.getByText(/Saved, and in force/).waitFor();
    for (let i = 0; i < 6; i++) await check(service.http, { user: "modest", path: "/orders/8" });
    const side = page.locator(".side", { has: page.getByRole("heading", { name: "Candidate", exact: true }) });
    await side.getByText("4", { exact: false }).and(side.locator(".big")).waitFor();
    expect(await side.locator(".big").textContent()).toMatch(/^4\s*would have refused/);

    await page.getByRole("button", { name: "Promote the candidate" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.locator("ins", { hasText: "2" }).waitFor();
    await dialog.getByRole("button", { name: "Promote" }).click();
    await page.getByText(/The candidate's numbers are live/).waitFor();
    const live = service.rules.find(({ id }) => id === "orders-per-user");
    expect([live?.limit, live?.candidate]).toEqual([2, undefined]);
  });

  test("a key is explained without being charged, and forgets when it is reset", async () => {
    const { page } = editor;
    for (let i = 0; i < 3; i++) await check(service.http, { user: "bea", path: "/orders/1" });
    await page.getByRole("link", { name: "Explain a key" }).click();
    await page.getByLabel("Attribute 1, name").fill("user");
    await page.getByLabel("Attribute 1, value").fill("bea");
    await page.getByRole("button", { name: "Add attribute" }).click();
    await page.getByLabel("Attribute 2, name").fill("path");
    await page.getByLabel("Attribute 2, value").fill("/orders/1");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("It would be refused now.").waitFor();
    const row = page.locator(".matched", { hasText: "orders-per-user" });
    await row.getByText("2 of 2 in use").waitFor();
    await row.getByText(/at \d\d:\d\d:\d\d/).waitFor();
    expect(page.url()).toContain("/keys?user=bea&path=%2Forders%2F1");
    await page.getByText(/Rules that do not apply/).click();
    await page.getByText(/starter-per-address/).waitFor();

    await row.getByRole("button", { name: "Reset" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Reset the key" }).click();
    await page.getByText("The rule orders-per-user has forgotten this key.").waitFor();
    await row.getByText("0 of 2 in use").waitFor();
    await page.getByText("It would pass now.").waitFor();
  });

  test("a rule is deleted after a question, and its page says that it is gone", async () => {
    const { page } = editor;
    await page.goto("/rules/starter-per-address");
    await page.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("is removed").waitFor();
    await dialog.getByRole("button", { name: "Delete rule" }).click();
    await page.getByRole("heading", { name: "Rules", level: 1 }).waitFor();
    await page.goto("/rules/starter-per-address");
    await page.getByText("There is no rule of this id.").waitFor();
  });

  test("the audit tells all of it, under the name of who did it", async () => {
    const { page } = editor;
    await page.getByRole("link", { name: "Audit" }).click();
    await page.getByRole("row", { name: /ann reset a key orders-per-user/ }).waitFor();
    await page.getByRole("row", { name: /ann changed rules .*nine was too many/ }).waitFor();
  });

  test("an admin makes a token that is shown once, and deletes it", async () => {
    await using boss = await open(browser, { at: service.http, token: ADMIN, path: "/tokens" });
    const { page } = boss;
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("Name").fill("bob");
    await page.getByLabel("Role").selectOption("viewer");
    await page.getByRole("button", { name: "Make token" }).click();
    // The link for a wall screen holds a viewer's token, too.
    const shown = page.locator(".shown-token code");
    await shown.first().waitFor();
    const [token = "", link] = await shown.allTextContents();
    expect(token).toMatch(/^slu_/);
    expect(link).toBe(`${service.http}/wall#token=${token}`);
    await page.getByRole("button", { name: "I have it" }).click();
    expect(await page.content()).not.toContain(token);
    await using bob = await open(browser, { at: service.http, token });
    await bob.page.getByText("viewer").first().waitFor();

    await page.getByRole("button", { name: "Delete bob" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete token" }).click();
    await page.getByRole("row", { name: /bob/ }).waitFor({ state: "detached" });
    await bob.page.getByText("Your session has ended.").waitFor();
    expect(boss.complaints).toEqual([]);
  });

  test("signing out leads to the sign-in page, and going back shows nothing", async () => {
    const { page } = editor;
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await editor.context.cookies()).toEqual([]);
    await page.goto("/rules");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  test("none of this made a page complain: no exception, nothing against the content security policy", () => {
    expect(editor.complaints).toEqual([]);
  });
});

/** In the page: how many pixels of the first chart are in the colour of refusals. */
const refusedPixels = `(() => {
  const canvas = document.querySelector("canvas");
  if (canvas === null) return 0;
  const probe = document.createElement("span");
  probe.style.color = "var(--refused)";
  document.body.append(probe);
  const colour = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  probe.remove();
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let i = 0; i < data.length; i += 4) {
    const distance = colour.reduce((sum, value, part) => sum + Math.abs(data[i + part] - value), 0);
    if (distance < 12) found++;
  }
  return found;
})()`;
