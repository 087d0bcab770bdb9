/** The service with a memory store that is full: it says so, counts what it forgets, and forgets used-up counters last. */
import type { Rule } from "sluice";
import { expect, test } from "vitest";
import { postJson, startServiceProcess } from "./running-service.js";

const rules: Rule[] = [{ id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1d" }];

test("past --memory-limit it warns once, its metrics move, and who was refused stays refused", async () => {
  const service = await startServiceProcess({ rules, settings: { "memory-limit": "2MB", "log-level": "warn" } });
  const checkAll = (users: string[]) =>
    postJson(`${service.http}/v1/check/batch`, { requests: users.map((user) => ({ attributes: { user } })) });
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${service.http}/metrics`)).text();
    const samples = [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, "gm"))];
    expect(samples, name).not.toEqual([]);
    return samples.reduce((sum, [, value]) => sum + Number(value), 0);
  };
  const { body } = await checkAll(["used-up", "used-up", "used-up"]);
  expect(body.decisions.map(({ allowed }: { allowed: boolean }) => allowed)).toEqual([true, true, false]);
  expect(await metric("sluice_memory_store_evictions_total")).toBe(0);

  for (let i = 0; i < 15; i++) await checkAll(Array.from({ length: 1_000 }, (_, n) => `${i}-${n}-${"x".repeat(100)}`));
  expect(await metric("sluice_memory_store_evictions_total")).toBeGreaterThan(0);
  expect(await metric("sluice_memory_store_limit_bytes")).toBe(2_000_000);
  expect(await metric("sluice_memory_store_bytes")).toBeLessThanOrEqual(2_000_000);
  // It is looked at once a second.
  const warnings = () => service.output().match(/the memory store is full and evicts live counters/g) ?? [];
  await expect.poll(() => warnings().length, { timeout: 20_000 }).toBe(1);
  expect((await checkAll(["used-up"])).body.decisions[0]).toMatchObject({ allowed: false, reason: "limit" });
  expect(await service.end()).toBe(0);
});
