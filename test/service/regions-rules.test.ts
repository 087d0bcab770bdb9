/** Two regions on one PostgreSQL: a change of rules reaches both, each of which has its own Redis; one that lost the database keeps its rules. */
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { eventually } from "../configuration/instance.js";
import { startPostgres } from "../harness/postgres.js";
import { startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy } from "../harness/tcp-fault-proxy.js";
import { postJson, type RunningService, startTestService } from "./running-service.js";

const ADMIN_TOKEN = "an-admin-token-for-tests";

function perAccount(limit: number): Record<string, unknown> {
  return { id: "per-account", key: ["account"], algorithm: "rolling-window", limit, window: "1h", scope: "global" };
}

async function put(service: RunningService, limit: number): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
  const body = JSON.stringify(perAccount(limit));
  const reply = await fetch(`${service.http}/admin/v1/rules/per-account`, { method: "PUT", headers, body });
  expect([200, 201]).toContain(reply.status);
}

function limitIn({ rules }: RunningService): unknown {
  return rules.find(({ id }) => id === "per-account")?.limit;
}

async function admitted(service: RunningService, account: string, times: number): Promise<number> {
  let allowed = 0;
  for (let i = 0; i < times; i++) {
    const { body } = await postJson(`${service.http}/v1/check`, { attributes: { account } });
    if (body.allowed) allowed++;
  }
  return allowed;
}

describe.skipIf(whyMissing("redis") || whyMissing("postgresql"))("two regions on one PostgreSQL", () => {
  test("a rule that one makes reaches both, and counts in one place; without the database the last rules hold", async () => {
    await using postgres = await startPostgres();
    await using home = await startRedis();
    await using euRedis = await startRedis();
    await using usRedis = await startRedis();
    await using toDatabase = await startTcpFaultProxy({ upstreamPort: postgres.port });
    const url = postgres.createDatabase("rules");
    const throughProxy = url.replace(`:${postgres.port}/`, `:${toDatabase.port}/`);
    const serviceIn = (region: string, store: string, database: string): Promise<RunningService> =>
      startTestService({
        settings: {
          region,
          store,
          database,
          "global-store": home.url,
          "admin-token": ADMIN_TOKEN,
          "store-deadline": "5s",
        },
      });
    await using eu = await serviceIn("eu", euRedis.url, url);
    await using us = await serviceIn("us", usRedis.url, throughProxy);

    await put(eu, 6);
    for (const service of [eu, us]) await eventually("has the rule", () => limitIn(service) === 6);
    // One counter for both, wherever a request arrives: what one of them holds, the other does not get.
    const first = (await admitted(eu, "a", 4)) + (await admitted(us, "a", 8));
    expect(first).toBeGreaterThanOrEqual(4);
    expect(first).toBeLessThanOrEqual(6);

    await put(us, 9);
    for (const service of [eu, us]) await eventually("has the change", () => limitIn(service) === 9);
    expect(first + (await admitted(us, "a", 8)) + (await admitted(eu, "a", 8))).toBeLessThanOrEqual(9);

    // Cut off from the database, not from home: the last rules go on, and the next change is seen afterwards.
    await toDatabase.refuse(true);
    toDatabase.cut();
    await put(eu, 12);
    await eventually("eu has the change", () => limitIn(eu) === 12);
    expect(limitIn(us)).toBe(9);
    expect(await admitted(us, "b", 3)).toBe(3);
    await toDatabase.refuse(false);
    await eventually("us has the change", () => limitIn(us) === 12);
  });
});
