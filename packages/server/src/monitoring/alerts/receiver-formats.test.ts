import { expect, test } from "vitest";
import { mailOf, opsgeniePost, pagerDutyPost } from "./receiver-formats.js";
import type { AlertMessage } from "./webhook-message.js";

const alert: AlertMessage = {
  id: "a1",
  subject: "store-memory",
  kind: "store-memory",
  state: "firing",
  severity: "warning",
  summary: "memory",
  startedAtMs: 0,
};

test("without a custom URL the vendor's is used, and without a console URL there is no link", () => {
  const pagerDuty = pagerDutyPost(alert, { key: "k" });
  expect(pagerDuty.url.href).toBe("https://events.pagerduty.com/v2/enqueue");
  expect(pagerDuty.body).not.toContain("client_url");
  expect(opsgeniePost(alert, { key: "k" }).url.href).toBe("https://api.opsgenie.com/v2/alerts");
  expect(mailOf(alert, {}).text).not.toContain("http");
});

test("a subject is one line of at most 200 characters", () => {
  const { subject } = mailOf({ ...alert, summary: `a\r\nb${"x".repeat(500)}` }, {});
  expect(subject).toMatch(/^\[Sluice\] Warning: store-memory a b/);
  expect(subject).toHaveLength(200);
});
