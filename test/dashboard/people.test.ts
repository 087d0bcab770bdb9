/** Alerts, tokens, sessions, audit and charts' files in a real Chromium. The store is away, so that an alert fires. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../harness/free-port.js";
import { type RunningService, startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, open, startBrowser } from "./console.js";

let browser: Browser;
let service: RunningService;
const received: string[] = [];
const hook = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  received.push(body);
  response.writeHead(204).end();
});

beforeAll(async () => {
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  browser = await startBrowser();
  service = await startTestService({
    settings: {
      "admin-token": ADMIN,
      "alert-allow-private": "true",
      store: `redis://127.0.0.1:${await freePort()}`,
    },
  });
});
afterAll(async () => {
  await browser.close();
  await service.close();
  hook.close();
});

const settings = (page: Page) => page.getByLabel("Policy (YAML)");

test("an admin sets receivers, is told of mistakes, sends a test, acknowledges and silences an alert", async () => {
  await using person = await open(browser, { at: service.http, token: ADMIN, path: "/alerts/settings" });
  const { page, complaints } = person;
  await settings(page).fill("receivers:\n  - { id: own, type: webhook, url: nowhere }\n");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("expected a URL that begins with https:// or http://").waitFor();
  expect(await seriousFindings(page)).toEqual([]);
  const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/hidden-path`;
  const condition = "conditions:\n  - { id: too-many, tag: payments, metric: refused-share, above: 0.3, for: 5m }\n";
  await settings(page).fill(`${condition}receivers:\n  - { id: own, type: webhook, url: "${url}" }\n`);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Version 1", { exact: true }).waitFor();
  expect(await settings(page).inputValue()).not.toContain("hidden-path");
  expect(await settings(page).inputValue()).toMatch(
    /id: too-many\s+tag: payments\s+metric: refused-share\s+above: 0.3/,
  );
  await page.getByRole("link", { name: "Alerts", exact: true }).first().click();
  await page.getByRole("button", { name: "Send a test to own" }).click();
  await page.getByText("The test message reached own.").waitFor();
  // The alert that fires may be sent before it.
  expect(received.filter((text) => text.includes('"event":"test"'))).toHaveLength(1);
  await page
    .getByRole("button", { name: /^Acknowledge/ })
    .first()
    .click();
  await page.getByLabel("Note").fill("looking");
  await page.getByRole("button", { name: "Acknowledge alert" }).click();
  await page.getByText("admin looks after it: looking").waitFor();
  await page
    .getByRole("button", { name: /^Silence/ })
    .first()
    .click();
  await page.getByLabel("Reason").fill("known");
  await page.getByRole("dialog").getByRole("button", { name: "Silence" }).click();
  await page.getByText("silenced until").waitFor();
  await page.getByRole("button", { name: /^End the silence/ }).waitFor();
  expect(await seriousFindings(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test("a token with an end is made; sessions are listed and another one is ended; the audit shows one author", async () => {
  await using other = await open(browser, { at: service.http, token: ADMIN });
  await using person = await open(browser, { at: service.http, token: ADMIN, path: "/tokens" });
  const { page, complaints } = person;
  await page.getByRole("button", { name: "New token" }).click();
  await page.getByLabel("Name").fill("wall");
  await page.getByLabel("Expires").selectOption("30d");
  await page.getByRole("button", { name: "Make token" }).click();
  await page.getByText("The token wall (viewer), shown this once:").waitFor();
  await page.getByRole("button", { name: "I have it" }).click();
  await page.getByRole("row", { name: /^wall viewer .* never Delete/ }).waitFor();
  await page.getByText("this one").waitFor();
  const ends = page.getByRole("button", { name: "End the session of admin" });
  // Until none but this one is left.
  for (let left = await ends.count(); left > 0; left--) {
    await ends.first().click();
    await expect.poll(() => ends.count(), { timeout: 60_000 }).toBe(left - 1);
  }
  await other.page.getByLabel("Token").waitFor();
  expect(await seriousFindings(page)).toEqual([]);
  await page.goto("/audit");
  await page.getByLabel("Author").fill("nobody");
  await page.getByText("No entry fits the filter.").waitFor();
  await page.getByLabel("Author").fill("admin");
  const today = new Date().toISOString().slice(0, 10);
  await page.getByLabel("From (UTC)").fill(today);
  await page.getByLabel("Until (UTC)").fill(today);
  await page.getByText("made a token").first().waitFor();
  expect(await seriousFindings(page)).toEqual([]);
  await page.waitForURL(`**/audit?author=admin&since=${today}&until=${today}`);
  const sent = page.url();
  const shown = () => Promise.all(["Author", "From (UTC)"].map((label) => page.getByLabel(label).inputValue()));
  await page.getByRole("link", { name: "Top keys" }).click();
  await page.waitForURL(/\/top-keys/);
  await page.goBack();
  await page.getByText("made a token").first().waitFor();
  expect(await shown()).toEqual(["admin", today]);
  await page.goto(sent.replace("author=admin", "author=nobody"));
  await page.getByText("No entry fits the filter.").waitFor();
  expect(await shown()).toEqual(["nobody", today]);
  await page.goto(sent);
  await page.getByText("made a token").first().waitFor();
  const saved = page.waitForEvent("download");
  await page.getByRole("link", { name: "CSV" }).click();
  const file = await (await saved).path();
  expect(readFileSync(file, "utf8")).toMatch(/^id,at,actor,action,target,details\r\n/);
  expect(complaints).toEqual([]);
});

test("a chart is saved as a picture and as numbers", async () => {
  await using person = await open(browser, { at: service.http, token: ADMIN });
  const { page, complaints } = person;
  const files: Record<string, Buffer> = {};
  for (const kind of ["PNG", "CSV"]) {
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: `${kind} of Decisions a second` }).click();
    const download = await saved;
    files[download.suggestedFilename()] = readFileSync(await download.path());
  }
  expect(files["sluice-decisions-a-second.png"]!.subarray(1, 4).toString()).toBe("PNG");
  expect(files["sluice-decisions-a-second.csv"]!.toString()).toMatch(/^time,Allowed,Refused,Shadow-refused\r\n/);
  expect(complaints).toEqual([]);
});
