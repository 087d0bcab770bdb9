/** What clients and editors choose freely, in a real Chromium: keys, ids and texts that are long, unseen, or look like addresses. */
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { ADMIN, admin, check, type OpenConsole, open, openConsole, signIn } from "./console.js";

const LONG_ID = "a".repeat(64);
const AGENT = `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36 Edg/148`;
const values = ["%2e%2e%2fetc", "a/b?c=d&e#f", "  two  spaces", "日本語 🔥", "x=y", "\u202etxt.exe", AGENT];
const longValues = [`${"z".repeat(4_000)}1`, `${"z".repeat(4_000)}2`];

/** Markup that wants to run, quotes, characters that terminals and browsers act on, and names that every object inherits. */
const texts = [
  `"'><img src=x onerror="window.pwned=1"><svg onload=window.pwned=1>`,
  "</script></textarea></title><script>window.pwned=1</script>",
  "javascript:window.pwned=1//{{7*7}}",
  "turned\u202eround\u2066 csi\u009b31m esc\u001b[2J nul\u0000 tag\u{e0041}\u{e007f}",
  "👩‍👩‍👧‍👦🔥🏴‍☠️".repeat(8),
  "__proto__",
  "constructor",
  "w".repeat(200),
];
/** Reads what a page shows, not the fields that people edit: their values must stay as they are. */
const findings = `(() => {
  const acts = /[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]/u;
  const found = new Set();
  const look = (where, text) => acts.test(text.replace(/[\\n\\t]/g, "")) && found.add(where + ": " + JSON.stringify(text.slice(0, 80)));
  look("title", document.title);
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest("textarea, .cm-editor")) continue;
    for (const node of element.childNodes) if (node.nodeType === 3) look(element.tagName, node.data);
    for (const name of ["title", "aria-label", "alt"]) look(element.tagName + " " + name, element.getAttribute(name) ?? "");
    if (element.matches("main script, main img[src=x], main svg[onload], main iframe")) found.add("markup " + element.outerHTML);
    for (const { name, value } of element.attributes) {
      if (name.startsWith("on") || /^javascript:/i.test(value) && name !== "value") found.add(name + "=" + value.slice(0, 80));
    }
  }
  if (window.pwned !== undefined || {}.polluted !== undefined) found.add("a script ran");
  if (document.documentElement.scrollWidth > window.innerWidth) found.add("as wide as " + document.documentElement.scrollWidth);
  return [...found];
})()`;

/** Every text as a description, a reason, what a rule matches, a client's value, a model's name, a blocked key, and why alerts are silenced. */
async function sendTexts(at: string): Promise<void> {
  const names = ["__proto__", "constructor", "n".repeat(128)];
  for (const [i, text] of texts.entries()) {
    const name = names[i % names.length]!;
    await admin(at, "PUT", `/rules/text-${i}?message=${encodeURIComponent(text)}`, {
      description: text,
      match: JSON.parse(`{ "path": "/t", "model": [${JSON.stringify(text)}, "x"], ${JSON.stringify(name)}: "*" }`),
      key: [name, "model"],
      algorithm: "fixed-window",
      limit: 1,
      window: "1h",
      blockFor: "1h",
      cost: { attribute: "tokens" },
    });
    const attributes = JSON.parse(`{ "path": "/t", "tokens": "1", ${JSON.stringify(name)}: ${JSON.stringify(text)} }`);
    for (let n = 0; n < 3; n++) await check(at, Object.assign(attributes, { model: text }));
    await admin(at, "POST", "/alerts/silences", { match: { rule: `text-${i}` }, for: "1h", reason: text });
  }
}

/** Two rules, one of them in shadow, and three requests of each client. */
async function sendHostile(at: string): Promise<void> {
  const rule = { match: { path: "/h" }, key: ["agent"], algorithm: "fixed-window", limit: 1, window: "1h" };
  const turned = "Limits \u202eeverybody";
  await admin(at, "PUT", `/rules/hostile?message=${encodeURIComponent(`why ${turned}`)}`, {
    ...rule,
    description: turned,
  });
  await admin(at, "PUT", `/rules/${LONG_ID}`, { ...rule, mode: "shadow", description: "d".repeat(500) });
  for (const agent of [...values, ...longValues]) for (let i = 0; i < 3; i++) await check(at, { agent, path: "/h" });
}

describe.skipIf(whyMissing("chromium"))("in a browser", () => {
  let { browser, page, person, service } = {} as OpenConsole;
  beforeAll(async () => {
    const opened = await openConsole({ path: "/top-keys?by=refusals", prepare: sendHostile });
    ({ browser, page, person, service } = opened);
    return opened.close;
  });

  test("a key leads to its own page, whatever its value is made of", async () => {
    // The tables are written every few seconds.
    await expect.poll(() => page.locator("tbody tr").count(), { timeout: 20_000 }).toBe(values.length + 2);
    for (const value of values) {
      await page.goto("/top-keys?by=refusals");
      const shown = value.replace("\u202e", "\\u202e");
      const link = page.locator("a.key-link").filter({ has: page.locator(".attribute", { hasText: shown }) });
      // A row that was never in sight has no inner text yet.
      await link.scrollIntoViewIfNeeded();
      // As it is, not with its spaces run together.
      expect(await link.locator(".attribute").innerText()).toBe(`agent=${shown}`);
      await link.click();
      await page.getByText("Last refusals").waitFor();
      expect(await page.getByLabel("Attribute 1, value").inputValue()).toBe(value);
      const refusals = page.locator("section.panel", { hasText: "Last refusals" });
      await expect.poll(() => refusals.locator("tbody tr").count(), { timeout: 60_000 }).toBeGreaterThan(0);
      await page.getByRole("img", { name: /^Checks of this key/ }).waitFor();
      expect(await page.locator("main").innerText()).not.toContain("\u202e");
    }
  });

  test("two clients whose values are too long to be kept are two rows, and neither leads to a third", async () => {
    await page.goto("/top-keys?by=refusals");
    const long = page.locator("tbody tr", { hasText: "zzzz" });
    await expect.poll(() => long.count()).toBe(2);
    expect(await long.locator("a.key-link").count()).toBe(0);
    expect(await long.first().locator(".attribute").innerText()).toBe(`agent=${"z".repeat(256)}…`);
    // Whoever has the whole value finds the key.
    await page.goto(`/keys?agent=${longValues[0]}`);
    await page.getByRole("img", { name: /^Checks of this key/ }).waitFor();
  });

  test("an id of 64 letters and text without a space leave every page as wide as the screen", async () => {
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 860 });
      for (const path of [
        "/",
        "/rules",
        `/rules/${LONG_ID}`,
        "/top-keys",
        `/keys?agent=x&path=/h`,
        "/history",
        "/audit",
      ]) {
        await page.goto(path);
        await page
          .getByText(LONG_ID)
          .or(page.getByRole("heading", { level: 1 }))
          .first()
          .waitFor();
        expect(await page.evaluate("document.documentElement.scrollWidth"), `${path} ${width}`).toBeLessThanOrEqual(
          width,
        );
      }
    }
    await page.setViewportSize({ width: 1280, height: 860 });
  });

  test("text that would turn its line around is spelled out: description, reason, difference, audit", async () => {
    for (const path of ["/rules", "/rules/hostile", "/history", "/audit"]) {
      await page.goto(path);
      await page.getByText("Limits \\u202eeverybody").first().waitFor();
      expect(await page.locator("main").innerText(), path).not.toContain("\u202e");
    }
    await page.getByLabel("Author").fill("nobody");
    await page.getByText("No entry fits the filter.").waitFor();
  });

  test("on no page is a text more than text: nothing runs, turns around, is unseen, or widens the page", async () => {
    await sendTexts(service.http);
    const pages = [
      "/",
      "/wall",
      "/rules",
      "/new-rule",
      "/history",
      "/audit",
      "/top-keys",
      "/top-keys?group=rule&by=refusals",
      "/spend",
      "/load",
      "/alerts",
      "/alerts/settings",
      "/store",
      "/regions",
      "/tokens",
      ...texts.map((_, i) => `/rules/text-${i}`),
      ...texts.flatMap((text) => {
        const spelled = encodeURIComponent(text);
        return [
          `/keys?path=/t&tokens=1&model=${spelled}&constructor=${spelled}&__proto__=${spelled}`,
          `/top-keys?rule=${spelled}&q=${spelled}`,
          `/audit?author=${spelled}&rule=${spelled}`,
          `/rules?q=${spelled}&tag=${spelled}`,
          `/rules/${spelled}`,
          `/nowhere/${spelled}`,
          `/spend?rule=${spelled}&unit=${spelled}`,
        ];
      }),
    ];
    const found: Record<string, unknown> = {};
    const look = async (tab: Page, path: string): Promise<void> => {
      await tab.setViewportSize({ width: 1280, height: 860 });
      await tab.goto(path);
      await tab.locator("h1").first().waitFor();
      // Figures and lazily loaded parts have come.
      await tab.waitForLoadState("networkidle");
      for (const width of [1280, 390]) {
        await tab.setViewportSize({ width, height: 860 });
        const bad = (await tab.evaluate(findings)) as string[];
        if (bad.length > 0) found[`${path.slice(0, 60)} ${width}`] = bad;
      }
    };
    // Most of the time of a page is the half second without a request: several tabs wait at once.
    const left = [...pages];
    const readIn = async (tab: Page): Promise<void> => {
      for (let path = left.shift(); path !== undefined; path = left.shift()) await look(tab, path);
    };
    const tabs = await Promise.all(Array.from({ length: 4 }, () => page.context().newPage()));
    await Promise.all(tabs.map(readIn));
    for (const tab of tabs) await tab.close();
    expect(found).toEqual({});
    expect(person.complaints).toEqual([]);
  });

  test("an address that cannot be decoded is answered by the console too", async () => {
    await page.goto("/rules/%");
    await page.getByText("There is no rule of this id.").waitFor();
    await page.goto("/%E0%A4%A");
    await page.getByText("There is no page of this name.").waitFor();
    const answer = await fetch(`${service.http}//elsewhere.example/%`, {
      headers: { accept: "text/html" },
      redirect: "manual",
    });
    expect([answer.status, answer.headers.get("location")]).toEqual([302, "/elsewhere.example/%25"]);
    const program = await fetch(`${service.http}/v1/%`);
    expect([program.status, ((await program.json()) as { code: string }).code]).toEqual([404, "not-found"]);
    expect(person.complaints).toEqual([]);
  });

  test("a page that cannot be drawn says so in its place, and the others stay", async () => {
    await using visitor = await open(browser, { at: service.http, token: ADMIN });
    await visitor.page.route("**/admin/v1/store", (route) => route.fulfill({ json: { nodes: "none" } }));
    await visitor.page.getByRole("link", { name: "Store", exact: true }).click();
    await visitor.page.getByText("This page could not be drawn.").waitFor();
    await visitor.page.getByRole("link", { name: "History", exact: true }).click();
    await visitor.page.getByRole("heading", { name: "History" }).waitFor();
    expect(visitor.complaints.length).toBeGreaterThan(0);
  });

  test("a browser whose language is no language (en-US@posix, under LANG=C) shows the console and its charts", async () => {
    const context = await browser.newContext({ baseURL: service.http });
    try {
      await context.addInitScript('Object.defineProperty(navigator, "language", { get: () => "en-US@posix" })');
      const strange = await context.newPage();
      const failures: string[] = [];
      strange.on("pageerror", (error) => failures.push(String(error)));
      await strange.goto("/");
      await signIn(strange, ADMIN);
      await strange.getByRole("img", { name: /^Decisions a second/ }).waitFor();
      expect(await strange.evaluate("navigator.language")).toBe("en-US@posix");
      expect(failures).toEqual([]);
    } finally {
      await context.close();
    }
  });
});
