/** The console of a service whose rules come from a file: read-only, and none of it looks like a failure. */
import type { Rule } from "sluice";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, open, startBrowser } from "./console.js";

const rule: Rule = {
  id: "per-user",
  key: ["user"],
  algorithm: "rolling-window",
  limit: 100,
  window: "1m",
  candidate: { limit: 60 },
};

describe.skipIf(whyMissing("chromium"))("rules from a file", () => {
  test("no page offers a change that would be refused, and none shows an error", async () => {
    await using browser = await startBrowser();
    await using service = await startTestService({ rules: [rule], settings: { "admin-token": ADMIN } });
    await using person = await open(browser, { at: service.http, token: ADMIN });
    const { page } = person;
    for (const [path, shown] of [
      ["/rules", "Read-only: the rules come from a file"],
      ["/rules/per-user", "No history: the rules come from a file."],
      ["/new-rule", "Read-only: the rules come from a file"],
      ["/history", "No history: the rules come from a file."],
      ["/audit", "No audit: the rules come from a file."],
      ["/tokens", "No tokens: the rules come from a file."],
      ["/load", "No rule sheds load"],
      ["/alerts/settings", "No alert policy: the rules come from a file."],
    ] as const) {
      await page.goto(path);
      await page.getByText(shown).first().waitFor();
      expect(await page.locator(".notice.bad").count(), path).toBe(0);
      const changes = page.getByRole("main").getByText(/^(New rule|Delete|Clone|Promote the candidate|New token)$/);
      expect(await changes.and(page.locator("a, button")).count(), path).toBe(0);
    }
    await page.goto("/rules/per-user");
    await page.getByText("No history: the rules come from a file.").waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    expect(person.complaints).toEqual([]);
  });
});
