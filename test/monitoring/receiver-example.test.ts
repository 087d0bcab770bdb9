/** The receiver of examples/alerts, run as its header says: it takes what Sluice signed, and nothing else. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { signatureHeaders } from "../../packages/server/src/monitoring/alerts/webhook-message.js";
import { Webhooks } from "../../packages/server/src/monitoring/alerts/webhooks.js";
import { webhooks as acceptedWebhooks } from "../../packages/server/src/settings/accepted-settings.js";
import { eventually } from "../configuration/instance.js";
import { freePort } from "../harness/free-port.js";
import { leashProcess } from "../harness/leash.js";

const secret = "a-secret-of-16-or-more";
const alert = {
  id: "a1",
  subject: "store-degraded",
  kind: "store-degraded",
  state: "firing",
  severity: "critical",
  summary: "the store does not answer in time",
  startedAtMs: 1_700_000_000_000,
} as const;

test("the example takes a signed alert, and refuses another secret, another body and an old message", async () => {
  const port = await freePort();
  const file = fileURLToPath(new URL("../../examples/alerts/receiver.mjs", import.meta.url));
  const child = spawn(process.execPath, [file, String(port)], { env: { ...process.env, ALERT_SECRET: secret } });
  leashProcess(child);
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  await eventually("it listens", () => said.includes(`listening on ${port}`));
  const url = `http://127.0.0.1:${port}/`;
  const webhooks = new Webhooks({
    webhooks: acceptedWebhooks.parse(url)!,
    secret,
    allowPrivate: true,
    log: { warn: () => undefined },
  });
  await webhooks.tell(alert);
  expect(webhooks.states[0]).toMatchObject({ lastSentAtMs: expect.any(Number) });
  await eventually("it says so", () =>
    said.includes("firing critical store-degraded: the store does not answer in time"),
  );

  const body = JSON.stringify({ type: "sluice.alert", alert });
  const post = async (headers: Record<string, string>, sent = body): Promise<number> =>
    (await fetch(url, { method: "POST", body: sent, headers })).status;
  const sign = (more: { secret?: string; atMs?: number } = {}): Record<string, string> =>
    signatureHeaders(body, { secret, id: "a1-firing", atMs: Date.now(), ...more });
  expect(await post(sign())).toBe(204);
  expect(await post({ ...sign(), "webhook-signature": `v1,AAAA ${sign()["webhook-signature"]}` })).toBe(204);
  expect(await post(sign({ secret: "another-secret-of-16" }))).toBe(401);
  expect(await post(sign(), body.replace("firing", "resolved"))).toBe(401);
  expect(await post({ ...sign(), "webhook-id": "another" })).toBe(401);
  expect(await post(sign({ atMs: Date.now() - 3_600_000 }))).toBe(401);
  expect(await post({})).toBe(401);
  child.kill();
});
