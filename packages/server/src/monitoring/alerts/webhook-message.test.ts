import { expect, test } from "vitest";
import { type AlertMessage, messageBody, messageId, signatureHeaders } from "./webhook-message.js";

const alert: AlertMessage = {
  id: "abc",
  subject: "unusual-rate:a",
  kind: "unusual-rate",
  rule: "a",
  state: "firing",
  severity: "warning",
  summary: "many <@everyone> & <http://evil|click>",
  startedAtMs: 1_700_000_000_000,
};

test("the body has the alert's public fields and no internal ones", () => {
  const kept = { ...alert, told: true, lastSeenMs: 5 };
  expect(JSON.parse(messageBody(kept, "json"))).toEqual({ type: "sluice.alert", alert });
});

test("Slack: untrusted markup is escaped, the state is a word, a resolved alert has a duration of at least a minute", () => {
  const text = (given: Partial<AlertMessage>) =>
    JSON.parse(messageBody({ ...alert, ...given }, "slack")).text as string;
  expect(text({})).toBe("*Warning: unusual-rate* many &lt;@everyone&gt; &amp; &lt;http://evil|click&gt;");
  expect(text({ severity: "critical" })).toMatch(/^\*CRITICAL: /);
  expect(text({ state: "resolved", endedAtMs: alert.startedAtMs + 1 })).toMatch(/^\*Resolved: .* \(after 1 min\)$/);
});

test("the signature covers id, time and body, each of them", () => {
  const sign = (body: string, id: string, atMs: number) =>
    signatureHeaders(body, { secret: "whsec_c2VjcmV0", id, atMs })["webhook-signature"];
  const signatures = [sign("b", "i", 1_000), sign("B", "i", 1_000), sign("b", "j", 1_000), sign("b", "i", 2_000)];
  expect(new Set(signatures).size).toBe(4);
  expect(sign("b", "i", 1_999)).toBe(sign("b", "i", 1_000));
});

test("a whsec_ secret is decoded, so it signs like its bytes", () => {
  const sign = (secret: string) => signatureHeaders("b", { secret, id: "i", atMs: 0 })["webhook-signature"];
  expect(sign("whsec_c2VjcmV0")).toBe(sign("secret"));
  expect(sign("whsec_???")).not.toBe(sign("???"));
});

test("a message's idempotency key is its alert and state: attempts share it, the resolution has another", () => {
  expect([messageId(alert), messageId({ ...alert, state: "resolved" })]).toEqual(["abc-firing", "abc-resolved"]);
});
