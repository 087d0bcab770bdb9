/** What an instance lacks is told by `/readyz` and by its metrics, and checks are answered meanwhile. */
import { expect, test } from "vitest";
import { freePort } from "../harness/free-port.js";
import { postJson, startTestService } from "./running-service.js";

const ADMIN = "the-admin-token-of-this-test";

const gauge = (text: string, name: string): number | undefined => {
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
};

test("without a database, cache or snapshot an instance starts, is not ready, and says what it lacks", async () => {
  const database = `postgres://127.0.0.1:${await freePort()}/sluice`;
  const store = `redis://127.0.0.1:${await freePort()}`;
  await using service = await startTestService({ settings: { database, store, "admin-token": ADMIN } });
  const ready = await fetch(`${service.http}/readyz`);
  expect(ready.status).toBe(503);
  expect(await ready.json()).toMatchObject({
    ready: false,
    why: "no rules could be read yet: nothing is limited",
    store: { answers: false },
    configuration: { loaded: false, database: "down", cache: "down" },
  });
  // Strangers learn that something is down, not where it is; those who have a token learn why.
  const told = async (headers: Record<string, string> = {}) =>
    await (await fetch(`${service.http}/readyz`, { headers })).text();
  for (const text of [await told(), await told({ authorization: "Bearer wrong" })]) {
    expect(text).not.toContain("127.0.0.1");
    expect(text).not.toContain("lastError");
  }
  expect(await told({ authorization: `Bearer ${ADMIN}` })).toContain("ECONNREFUSED");
  const metrics = await (await fetch(`${service.http}/metrics`)).text();
  expect(gauge(metrics, "sluice_rules_loaded")).toBe(0);
  expect(gauge(metrics, 'sluice_configuration_up{part="database"}')).toBe(0);
  expect(gauge(metrics, 'sluice_configuration_up{part="cache"}')).toBe(0);
  expect((await postJson(`${service.http}/v1/check`, { attributes: { user: "ann" } })).status).toBe(200);
});

test("an instance that has its rules says so", async () => {
  await using service = await startTestService();
  expect((await fetch(`${service.http}/readyz`)).status).toBe(200);
  const metrics = await (await fetch(`${service.http}/metrics`)).text();
  expect(gauge(metrics, "sluice_rules_loaded")).toBe(1);
  expect(gauge(metrics, 'sluice_configuration_up{part="database"}')).toBe(1);
  expect(metrics).not.toContain('part="cache"');
});
