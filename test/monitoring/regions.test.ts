/** `GET /admin/v1/regions` against real servers: two regions and a home, one of them cut off, and back again. */
import { expect, test } from "vitest";
import type { RegionsView, RegionView } from "../../packages/server/src/monitoring/views/regions.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { eventually } from "../configuration/instance.js";
import { startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy } from "../harness/tcp-fault-proxy.js";
import { postJson, type RunningService, startTestService } from "../service/running-service.js";

const ADMIN_TOKEN = "an-admin-token-for-tests";
const rules = [
  {
    id: "per-account",
    key: ["account"],
    algorithm: "rolling-window",
    limit: 3,
    window: "1m",
    scope: "global",
    onStoreFailure: "local",
  },
] as const;

const get = (service: RunningService, path: string): Promise<Response> =>
  fetch(`${service.http}/admin/v1${path}`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });

async function readRegions(service: RunningService): Promise<RegionsView> {
  const reply = await get(service, "/regions");
  expect(reply.status).toBe(200);
  return (await reply.json()) as RegionsView;
}

async function regionIn(service: RunningService, name: string): Promise<RegionView | undefined> {
  return (await readRegions(service)).regions.find(({ region }) => region === name);
}

test("without a global store there are no regions; without monitoring nothing is known of them", async () => {
  await using alone = await startTestService({ rules: [], settings: { "admin-token": ADMIN_TOKEN } });
  expect(await readRegions(alone)).toEqual({ atMs: expect.any(Number), scope: "all", regions: [] });
  await using blind = await startTestService({
    rules: [],
    settings: { "admin-token": ADMIN_TOKEN, monitoring: "off" },
  });
  const reply = await get(blind, "/regions");
  expect(reply.status).toBe(404);
  expect(await reply.json()).toMatchObject({ code: "monitoring-off" });
  expect((await fetch(`${alone.http}/admin/v1/regions`)).status).toBe(401);
});

test.skipIf(whyMissing("redis"))("each region sees the traffic of all, and which of them is cut off", async () => {
  await using home = await startRedis();
  await using euRedis = await startRedis();
  await using usRedis = await startRedis();
  await using toHome = await startTcpFaultProxy({ upstreamPort: home.port });
  const serviceIn = (region: string, store: string, globalStore: string): Promise<RunningService> =>
    startTestService({
      rules,
      settings: { store, region, "global-store": globalStore, "admin-token": ADMIN_TOKEN, "store-deadline": "5s" },
    });
  await using eu = await serviceIn("eu", euRedis.url, toHome.url);
  await using us = await serviceIn("us", usRedis.url, home.url);
  const use = (service: RunningService, times: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: times }, () => postJson(`${service.http}/v1/check`, { attributes: { account: "a" } })),
    );

  await use(eu, 40);
  await eventually("us sees eu's requests, its refusals and its round trip", async () => {
    await use(eu, 4);
    const [seen, own] = [await regionIn(us, "eu"), await regionIn(us, "us")];
    if (seen === undefined || own === undefined) return false;
    return seen.refusedPerSecond > 0 && seen.globalPerSecond > 0 && seen.roundTripMs! > 0;
  });
  expect(await readRegions(us)).toMatchObject({
    scope: "all",
    own: "us",
    regions: [
      { region: "eu", state: "up", instances: 1, cutOffInstances: 0 },
      { region: "us", state: "up", instances: 1 },
    ],
  });

  const beforeMs = Date.now();
  await toHome.refuse(true);
  toHome.cut();
  await eventually("eu says that it is cut off", async () => (await regionIn(eu, "eu"))?.state === "cut-off");
  const cut = await readRegions(eu);
  expect(cut).toMatchObject({
    scope: "region",
    own: "eu",
    regions: [{ region: "eu", instances: 1, cutOffInstances: 1 }],
  });
  expect(cut.regions[0]!.sinceMs).toBeGreaterThanOrEqual(beforeMs);
  expect(cut.regions[0]!.sinceMs).toBeLessThanOrEqual(cut.atMs);
  // What the ten seconds would do that its report is kept for.
  for (const key of (await home.cli("KEYS", "*text:region:eu:*")).trim().split("\n")) await home.cli("DEL", key);
  await eventually("us misses eu", async () => (await regionIn(us, "eu"))?.state === "silent");

  await toHome.refuse(false);
  await eventually("eu is back for both", async () => {
    const [here, there] = await Promise.all([readRegions(eu), regionIn(us, "eu")]);
    return here.scope === "all" && here.regions[0]!.state === "up" && there?.state === "up";
  });
});
