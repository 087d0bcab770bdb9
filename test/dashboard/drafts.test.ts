/** What one types into a rule is not lost, in a real Chromium: by a session's end, a click elsewhere, a rule that others delete. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RunningService, startTestService } from "../service/running-service.js";
import { ADMIN, admin, check, makeToken, open, signIn, startBrowser } from "./console.js";

const limit = (page: Page) => page.getByLabel("Limit", { exact: true });
const RULE = "/rules/starter-per-user";

describe.skipIf(whyMissing("chromium"))("in a browser", () => {
  let browser: Browser;
  let service: RunningService;
  beforeAll(async () => {
    browser = await startBrowser();
    service = await startTestService({ settings: { "admin-token": ADMIN } });
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  test("a session that ends in the middle of a save loses nothing: after signing in the draft is there and is saved", async () => {
    const token = await makeToken(service.http, "ann", "editor");
    await using person = await open(browser, { at: service.http, token, path: RULE });
    const { page } = person;
    await limit(page).fill("31");
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("dialog").locator("ins").waitFor();
    // The token is gone between the look and the save.
    await admin(service.http, "DELETE", "/tokens/ann");
    await page.getByRole("button", { name: "Save rule" }).click();
    await page.getByText("Your session has ended.").waitFor();
    expect(service.rules.find(({ id }) => id === "starter-per-user")?.limit).not.toBe(31);

    await signIn(page, await makeToken(service.http, "ann", "editor"));
    await page.getByText(/Your unsaved changes of \d\d:\d\d:\d\d are here again/).waitFor();
    expect(await limit(page).inputValue()).toBe("31");
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("button", { name: "Save rule" }).click();
    await page.getByText(/Saved, and in force/).waitFor();
    expect(service.rules.find(({ id }) => id === "starter-per-user")?.limit).toBe(31);
    await page.reload();
    await limit(page).waitFor();
    expect(await page.getByText("Your unsaved changes").count()).toBe(0);
    expect(person.complaints).toEqual([]);
  });

  test("another person in the same tab does not get the draft", async () => {
    const token = await makeToken(service.http, "bob", "editor");
    await using person = await open(browser, { at: service.http, token, path: RULE });
    const { page } = person;
    await limit(page).fill("32");
    await page.getByText("No mistakes.").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await signIn(page, ADMIN);
    await limit(page).waitFor();
    expect(await limit(page).inputValue()).not.toBe("32");
    expect(await page.getByText("Your unsaved changes").count()).toBe(0);
  });

  test("a click elsewhere asks first; what is kept is there on the way back, what is discarded is gone", async () => {
    await using person = await open(browser, { at: service.http, token: ADMIN, path: RULE });
    const { page } = person;
    const before = await limit(page).inputValue();
    await limit(page).fill("33");
    await page.getByRole("link", { name: "Overview" }).click();
    const dialog = page.getByRole("dialog", { name: "Leave with unsaved changes?" });
    await dialog.getByRole("button", { name: "Stay" }).click();
    await dialog.waitFor({ state: "detached" });
    expect([new URL(page.url()).pathname, await limit(page).inputValue()]).toEqual([RULE, "33"]);

    await page.getByRole("link", { name: "Overview" }).click();
    await dialog.getByRole("button", { name: "Keep and leave" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await page.getByRole("link", { name: "starter-per-user" }).click();
    await page.getByText("Your unsaved changes").waitFor();
    expect(await limit(page).inputValue()).toBe("33");

    // Text that is no YAML yet is kept as it is.
    await page.getByLabel("YAML").fill("id: [");
    await page.goBack();
    await page.goForward();
    await page.getByText("Your unsaved changes").waitFor();
    expect(await page.getByLabel("YAML").inputValue()).toBe("id: [");

    await page.getByRole("link", { name: "Overview" }).click();
    await dialog.getByRole("button", { name: "Discard and leave" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.goto(RULE);
    await limit(page).waitFor();
    expect(await limit(page).inputValue()).toBe(before);
    // Nothing is asked where nothing was changed.
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(person.complaints).toEqual([]);
  });

  test("a rule that others delete while it is edited leaves the draft, which makes it anew", async () => {
    await admin(service.http, "PUT", "/rules/short-lived", { key: [], algorithm: "gcra", limit: 5, window: "1m" });
    await using person = await open(browser, { at: service.http, token: ADMIN, path: "/rules/short-lived" });
    const { page } = person;
    await limit(page).fill("77");
    await page.getByText("No mistakes.").waitFor();
    await admin(service.http, "DELETE", "/rules/short-lived");
    await page.getByText("This rule is gone").waitFor({ timeout: 30_000 });
    expect(await limit(page).inputValue()).toBe("77");
    await page.getByRole("button", { name: "Review and create" }).click();
    await page.getByText("Others have changed the rules meanwhile.").waitFor();
    await page.getByRole("button", { name: /Go on from version/ }).click();
    await page.getByRole("button", { name: "Create rule" }).click();
    await page.getByText(/Created again, and in force/).waitFor();
    expect(service.rules.find(({ id }) => id === "short-lived")?.limit).toBe(77);
    expect(person.complaints).toEqual([]);
  });

  test("that a save worked is said where one looks, at the end of a long page and on a phone", async () => {
    await using person = await open(browser, { at: service.http, token: ADMIN, path: RULE, width: 390 });
    const { page } = person;
    await limit(page).fill("41");
    await page.getByRole("button", { name: "Review and save" }).click();
    await page.getByRole("button", { name: "Save rule" }).click();
    const notice = page.getByText(/Saved, and in force/);
    await notice.waitFor();
    const box = (await notice.boundingBox())!;
    expect(box.y >= 0 && box.y + box.height <= 860, JSON.stringify(box)).toBe(true);
    await page.getByRole("button", { name: "Close" }).click();
    await notice.waitFor({ state: "detached" });
  });

  test("what adds a row moves the focus into it, and what removes one does not lose it", async () => {
    await using person = await open(browser, { at: service.http, token: ADMIN, path: "/keys" });
    const { page } = person;
    const focused = (): Promise<string> =>
      page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent");
    await page.getByRole("button", { name: "Add attribute" }).click();
    expect(await focused()).toBe("Attribute 2, name");
    await page.getByRole("button", { name: "Remove attribute 2" }).click();
    expect(await focused()).toBe("Attribute 1, name");
    await page.goto("/new-rule");
    await page.getByRole("button", { name: "Add attribute" }).click();
    expect(await focused()).toBe("Applies to: attribute 1");
    await page.getByRole("button", { name: "Applies to: remove attribute 1" }).click();
    expect(await focused()).toBe("Add attribute");
  });

  test("a rule that asks for an attribute which no request had is not called right", async () => {
    await check(service.http, { user: "ann", path: "/v1/search" });
    await using person = await open(browser, { at: service.http, token: ADMIN, path: "/new-rule" });
    const { page } = person;
    await page.getByLabel("Id").fill("search");
    await page.getByLabel("Counted by").fill("/v1/search");
    await page.getByText("Valid, but most likely not what you mean").waitFor();
    await page
      .locator(".field", { hasText: "Counted by" })
      .getByText(/no request lately had the attribute "\/v1\/search"/)
      .waitFor();
    expect(await page.getByText("No mistakes.").count()).toBe(0);
    await page.getByLabel("Counted by").fill("user");
    await page.getByText("No mistakes.").waitFor();
    expect(person.complaints).toEqual([]);
  });

  test("live and candidate are compared on the same requests", async () => {
    const rule = { match: { path: "/compared" }, key: ["user"], algorithm: "fixed-window", limit: 100, window: "1h" };
    await admin(service.http, "PUT", "/rules/compared", rule);
    for (let i = 0; i < 20; i++) await check(service.http, { user: "ann", path: "/compared" });
    await admin(service.http, "PUT", "/rules/compared", { ...rule, candidate: { limit: 2 } });
    for (let i = 0; i < 5; i++) await check(service.http, { user: "bob", path: "/compared" });
    await using person = await open(browser, { at: service.http, token: ADMIN, path: "/rules/compared" });
    const { page } = person;
    await page.getByText(/of 5 requests: the candidate alone would have refused 3, and let pass 0/).waitFor();
    expect(await page.locator(".side").allInnerTexts()).toEqual([
      expect.stringContaining("0 % of 5"),
      expect.stringContaining("60 % of 5"),
    ]);
  });
});
