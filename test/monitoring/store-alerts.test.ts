/** Alerts of the whole service with a real Redis: memory that runs out, an outage, and who may read them. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { redisClient } from "../../packages/server/src/instance/redis-client.js";
import { RedisSharedState } from "../../packages/server/src/instance/redis-shared-state.js";
import type { AlertsView } from "../../packages/server/src/monitoring/views/alerts.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { eventually } from "../configuration/instance.js";
import { startRedis } from "../harness/redis-server.js";
import { postJson, type RunningService, startTestService } from "../service/running-service.js";

const ADMIN_TOKEN = "an-admin-token-for-tests";
const rules = [{ id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 100, window: "1h" }] as const;

async function receiver() {
  const subjects: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { alert } = JSON.parse(body) as { alert: { state: string; subject: string } };
    subjects.push(`${alert.state} ${alert.subject.split(":")[0]}`);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { subjects, url, [Symbol.asyncDispose]: async () => void server.close() };
}

async function readAlerts(service: RunningService): Promise<AlertsView> {
  const reply = await fetch(`${service.http}/admin/v1/alerts`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  expect(reply.status).toBe(200);
  return (await reply.json()) as AlertsView;
}

const check = (service: RunningService, user: string) =>
  postJson(`${service.http}/v1/check`, { attributes: { user } }).then(({ body }) => body);

// Side by side, each with a Redis and a service of its own: an alert waits until its cause has lasted.
test.skipIf(whyMissing("redis")).concurrent(
  "a Redis that is full under noeviction raises alerts, though nothing can be written to it",
  async () => {
    await using redis = await startRedis({ args: ["--maxmemory", "20mb"] });
    await using hook = await receiver();
    await using service = await startTestService({
      rules,
      settings: {
        store: redis.url,
        "admin-token": ADMIN_TOKEN,
        "alert-webhook": hook.url,
        "alert-allow-private": "true",
        "store-deadline": "1s",
      },
    });
    expect(await check(service, "ann")).not.toHaveProperty("degraded");
    expect((await readAlerts(service)).alerts).toEqual([]);
    await redis.cli("DEBUG", "POPULATE", "100000", "filler", "200");
    expect(await check(service, "bob")).toMatchObject({ degraded: "local" });
    await eventually(
      "both alerts fire",
      async () => {
        await check(service, "cid");
        return new Set((await readAlerts(service)).alerts.map(({ kind }) => kind)).size === 2;
      },
      25_000,
    );
    const { alerts } = await readAlerts(service);
    expect(alerts.every(({ state, severity }) => state === "firing" && severity === "critical")).toBe(true);
    expect(alerts.find(({ kind }) => kind === "store-memory")!.summary).toMatch(/of its maxmemory .*it refuses writes/);
    expect(alerts.find(({ kind }) => kind === "store-degraded")!.summary).toContain("OOM");
    await eventually("both were sent", () => hook.subjects.length >= 2);
    expect([...hook.subjects].sort()).toEqual(["firing store-degraded", "firing store-memory"]);
  },
  60_000,
);

test.concurrent("alerts are for those with a token; without monitoring there are none", async () => {
  await using service = await startTestService({ rules, settings: { "admin-token": ADMIN_TOKEN } });
  expect((await fetch(`${service.http}/admin/v1/alerts`)).status).toBe(401);
  expect(await readAlerts(service)).toMatchObject({ alerts: [], webhooks: [] });
});

test
  .skipIf(whyMissing("redis"))
  .concurrent(
    "an instance whose rules come from a file compares its version with nobody's: each counts its own",
    async () => {
      await using redis = await startRedis();
      await using _fromFile = await startTestService({ rules, settings: { store: redis.url } });
      await using _fromDatabase = await startTestService({ settings: { store: redis.url } });
      const client = redisClient(redis.url);
      const shared = new RedisSharedState(client);
      try {
        const readReports = async () =>
          Array.from((await shared.readAll("instance:")).values(), (text) => JSON.parse(text));
        await eventually("both report", async () => (await readReports().catch(() => [])).length === 2);
        const versions = (await readReports()).map(({ sharedVersion = "none" }) => sharedVersion);
        expect(versions.sort()).toEqual([expect.any(Number), "none"]);
      } finally {
        client.disconnect();
      }
    },
  );

test.skipIf(whyMissing("redis")).concurrent(
  "a Redis that goes away while nobody asks is told in the store's view and as an alert, and so is its return",
  async () => {
    await using redis = await startRedis();
    await using service = await startTestService({ rules, settings: { store: redis.url, "admin-token": ADMIN_TOKEN } });
    const storeState = async (): Promise<string> => {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      return ((await (await fetch(`${service.http}/admin/v1/store`, { headers })).json()) as { state: string }).state;
    };
    expect(await storeState()).toBe("up");
    redis.pause();
    await eventually("the store is told as degraded", async () => (await storeState()) === "degraded");
    // One store health: what the probe found, the metrics report too.
    expect(await (await fetch(`${service.http}/metrics`)).text()).toContain("sluice_store_degraded 1");
    await eventually(
      "the alert fires",
      async () =>
        (await readAlerts(service)).alerts.some(({ kind, state }) => kind === "store-degraded" && state === "firing"),
      40_000,
    );
    redis.resume();
    await eventually("the store is told as up", async () => (await storeState()) === "up");
  },
  90_000,
);
