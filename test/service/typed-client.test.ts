/** The library's typed client against the real service: every call of the data plane. */
import { createClient } from "sluice/client";
import { expect, test } from "vitest";
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
