/** The library's typed client against the real service: every call of the data plane. */
import type { Rule } from "sluice";
import { createClient, type ServiceClient } from "sluice/client";
import { expect, test } from "vitest";
import { startRedis } from "../harness/redis-server.js";
import { startTestService } from "./running-service.js";

test("the typed client speaks to the service: check, batch, charge, peek, explain, refund, release, renew", async () => {
  await using service = await startTestService({
    rules: [
      { id: "per-user", key: ["user"], algorithm: "rolling-window", limit: 3, window: "1m" },
      { id: "jobs", key: ["job"], algorithm: "concurrency", limit: 1, ttl: "30s" },
    ],
    settings: { "api-token": "a-token-of-the-data-plane" },
  });
  const client = createClient({ server: service.http, token: "a-token-of-the-data-plane" });
  expect(await client.check({ user: "ann" }, { id: "order-1" })).toMatchObject({ allowed: true, remaining: 2 });
  expect(
    await client.checkBatch([{ attributes: { user: "ann" } }, { attributes: { user: "bob" }, cost: 3 }]),
  ).toMatchObject([
    { allowed: true, remaining: 1 },
    { allowed: true, remaining: 0 },
  ]);
  expect(await client.peek({ user: "bob" })).toMatchObject({ allowed: false, violated: ["per-user"], reason: "limit" });
  expect(JSON.stringify(await client.explain({ user: "bob" }))).toContain("per-user");
  expect(await client.refund("order-1")).toBe(true);
  expect(await client.check({ user: "ann" }, { cost: 0 })).toMatchObject({ remaining: 2 });
  expect(await client.charge({ user: "cas" }, { cost: 5, id: "usage-1" })).toMatchObject({ allowed: true, debt: 2 });
  expect(await client.charge({ user: "cas" }, { cost: 5, id: "usage-1" })).toMatchObject({ allowed: true, debt: 2 });
  expect(await client.check({ user: "cas" })).toMatchObject({ allowed: false, debt: 2, checks: [{ debt: 2 }] });
  expect(await client.charge({ job: "nightly" })).not.toHaveProperty("lease");
  const { lease } = await client.check({ job: "nightly" });
  expect(await client.check({ job: "nightly" })).toMatchObject({ allowed: false, reason: "concurrency" });
  expect(await client.renew(lease!.id)).toBeTruthy();
  expect(await client.release(lease!.id)).toBe(true);
  expect(await client.check({ job: "nightly" })).toMatchObject({ allowed: true });

  const stranger = createClient({ server: service.http });
  await expect(stranger.check({ user: "ann" })).rejects.toMatchObject({ code: "unauthorized" });
});

test("a reservation that one instance made is extended, settled and cancelled through another", async () => {
  const rules: Rule[] = [
    {
      id: "tokens",
      key: ["org"],
      algorithm: "token-bucket",
      limit: 1_000,
      window: "365d",
      unit: "tokens",
      cost: { attribute: "tokens" },
      estimate: { attribute: "max_tokens", default: 100, overrun: "stop" },
    },
  ];
  const redis = await startRedis();
  try {
    const settings = { store: redis.url, "store-deadline": "10s" };
    await using here = await startTestService({ rules, settings });
    await using there = await startTestService({ rules, settings });
    const [first, second] = [here, there].map(({ http }) => createClient({ server: http })) as [
      ServiceClient,
      ServiceClient,
    ];
    const { reservation } = await first.check({ org: "acme", max_tokens: 300 });
    expect(reservation).toMatchObject({ held: { tokens: 300 }, expiresAfterMs: 300_000 });
    expect(await second.extend(reservation!, { tokens: 500 })).toMatchObject({
      allowed: true,
      remaining: 500,
      reservation: { id: reservation!.id, held: { tokens: 500 } },
    });
    expect(await first.extend(reservation!.id, { tokens: 2_000 })).toMatchObject({ allowed: false });
    const settlements = await Promise.all(
      [first, second].map((client) => client.settle(reservation!, { tokens: 120 })),
    );
    for (const settlement of settlements) {
      expect(settlement).toEqual({ settled: true, charged: { tokens: 120 }, overrun: {} });
    }
    expect(await first.peek({ org: "acme" }, { cost: 0 })).toMatchObject({ remaining: 880 });
    const { reservation: other } = await second.check({ org: "acme" });
    expect(await first.cancel(other!)).toMatchObject({ settled: true, charged: { tokens: 0 } });
    await expect(first.extend(other!, { tokens: 1 })).rejects.toMatchObject({
      code: "unknown-reservation",
      status: 404,
    });
    await expect(first.settle("nonsense", { tokens: 1 })).rejects.toMatchObject({ code: "invalid-request" });
    const metrics = await (await fetch(new URL("/metrics", there.http))).text();
    for (const line of [
      "sluice_reservations_opened_total 1",
      'sluice_reservations_units_total{kind="held",unit="tokens"} 100',
      "sluice_reservations_expired_total 0",
    ]) {
      expect(metrics).toContain(line);
    }
  } finally {
    await redis.stop();
  }
});
