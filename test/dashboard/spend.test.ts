/** Units in the console: tokens and money of calls to a fake vendor, estimates beside what was settled, who spends; and the store away. */
import type { Browser } from "playwright-core";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startFakeLlm } from "../harness/fake-llm.js";
import { startRedis } from "../harness/redis-server.js";
import { postJson, startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, admin, cellsOf, check, makeToken, open, startBrowser } from "./console.js";

const rules: Rule[] = [
  {
    id: "completion-tokens",
    key: ["org"],
    algorithm: "token-bucket",
    limit: 50_000,
    window: "1m",
    unit: "tokens",
    cost: { attribute: "completion_tokens" },
    estimate: { attribute: "max_tokens", quantile: 0.9, default: 500 },
  },
  {
    id: "money",
    key: ["org"],
    algorithm: "fixed-window",
    align: "calendar",
    window: "month",
    limit: 20_000_000,
    unit: "microdollars",
    cost: { attribute: "cost_microdollars" },
    estimate: { default: 2_000 },
  },
];

const files = {
  "attributes.yaml": "attributes: { org: { header: x-org } }\n",
  "prices.yaml": "models: { 'fake-*': { prompt: 1, completion: 10 }, unused: { prompt: 2, completion: 3 } }\n",
};

describe.skipIf(whyMissing("chromium", "redis"))("spending", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  test("is shown in the rules' units: by rule, key and model, and as unknown while the store is away", async () => {
    await using redis = await startRedis();
    await using fake = await startFakeLlm();
    await using service = await startTestService({
      files,
      settings: {
        store: redis.url,
        "admin-token": ADMIN,
        "store-deadline": "2s",
        upstream: fake.url,
        usage: "openai",
        attributes: "attributes.yaml",
        "usage-prices": "prices.yaml",
      },
    });
    const at = service.http;
    await admin(at, "PUT", "/rules", { rules });
    const call = (org: string, model: string) =>
      fetch(`${service.proxy}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-org": org },
        // The vendor's answer has as many tokens as the model's name ends with.
        body: JSON.stringify({ model, messages: [{ role: "user", content: "three short words" }] }),
      }).then((answer) => answer.arrayBuffer());
    for (let i = 0; i < 22; i++) await call("acme", "fake-40");
    await call("acme", "made-up-\u202e700");
    await call("bob", "fake-100");

    await using person = await open(browser, { at, path: "/spend", token: await makeToken(at, "v", "viewer") });
    const { page } = person;
    const tokens = 22 * 40 + 700 + 100;
    await expect
      .poll(() => cellsOf(page, "Spent, by rule", /completion-tokens/), { timeout: 20_000 })
      .toContain("1,680 tokens");
    expect(tokens).toBe(1_680);
    await expect
      .poll(() => cellsOf(page, "Top spenders", /acme/), { timeout: 20_000 })
      .toEqual(["org=acme", "completion-tokens", "1,580 tokens", "100 %", "23"]);
    // What was not listed costs as the dearest, under no name of its own.
    expect((await cellsOf(page, "Models", /fake-\*/)).slice(0, 2)).toEqual(["fake-*", "23"]);
    expect((await cellsOf(page, "Models", /not listed/)).slice(0, 4)).toEqual([
      "not listed",
      "1",
      expect.any(String),
      "700",
    ]);
    expect((await cellsOf(page, "Models", /unused/)).slice(0, 2)).toEqual(["unused", "0"]);
    await page.getByText("microdollars", { exact: true }).click();
    await expect.poll(async () => (await cellsOf(page, "Top spenders", /acme/))[2]).toMatch(/^\$0\.01\d+$/);
    expect(await seriousFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);
    expect(await seriousFindings(page)).toEqual([]);

    // The rule's page: the limit in its unit, what was held and settled, and what was learned.
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.goto("/rules/completion-tokens");
    await page.getByText("50,000 tokens in 1m").first().waitFor();
    const panel = page.locator("section", { hasText: "Estimate against actual" }).first();
    await panel.locator(".figure", { hasText: "Settled" }).getByText("1,680 tokens").waitFor();
    const learned = await cellsOf(page, "Estimate against actual", /the rule's/);
    // Half of the answers had forty tokens at most.
    expect([learned[1], learned[2]]).toEqual(["24", expect.stringMatching(/^4[0-3] tokens$/)]);
    expect(learned[5]).toMatch(/^\d+ tokens\s+learned, 90 %$/);
    expect(await seriousFindings(page)).toEqual([]);
    await page.goto("/keys?org=acme");
    await page
      .getByText(/Would hold/)
      .first()
      .waitFor();
    await page.getByText(/\d+ tokens, until the real cost is settled/).waitFor();
    await page.getByText(/of 50,000 tokens in use/).waitFor();
    expect(await page.getByText(/of debt/).count()).toBe(0);
    // A bucket pays 50,000 a minute: the debt lasts longer than this test, and its size is that of the moment.
    await postJson(`${at}/v1/charge`, { attributes: { org: "acme", completion_tokens: 999_000 } });
    await page.reload();
    await page.getByText(/50,000 of 50,000 tokens in use; 9\d\d,\d{3} tokens of debt to be paid first/).waitFor();

    await redis.kill();
    await check(at, { org: "acme" });
    await page.goto("/rules/completion-tokens");
    await page.getByText("What was learned is unknown.").waitFor();
    await page.goto("/spend");
    await page.getByText("Of this instance alone: the others cannot be asked.").waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    expect(person.complaints).toEqual([]);
  }, 120_000);

  test("without units the page says what to do", async () => {
    await using service = await startTestService({ settings: { "admin-token": ADMIN } });
    await using person = await open(browser, { at: service.http, path: "/spend", token: ADMIN });
    await person.page.getByText("No rule names a unit.").waitFor();
    expect(await seriousFindings(person.page)).toEqual([]);
  });
});
