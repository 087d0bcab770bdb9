/** The examples of examples/library run as their headers say, in plain Node, and tell what they promise. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { whyMissing } from "../scripts/system-components.mjs";
import { freePort } from "./harness/free-port.js";
import { startRedis } from "./harness/redis-server.js";

async function runExample(name: string, ...args: string[]): Promise<string[]> {
  const file = fileURLToPath(new URL(`../examples/library/${name}`, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...args], { timeout: 20_000 });
  return stdout.trimEnd().split("\n");
}

test("the memory quick start shows two rules, a refusal that charges nothing, and another user", async () => {
  const lines = await runExample("memory.mjs");
  expect(lines).toHaveLength(6);
  expect(lines[0]).toBe("/home    allowed, 2 of 3 left under per-user");
  expect(lines[1]).toBe("/search  allowed, 0 of 1 left under search");
  expect(lines[2]).toMatch(/^\/search {2}refused by search, try again in \d+ s$/);
  expect(lines[3]).toBe("/home    allowed, 0 of 3 left under per-user");
  expect(lines[4]).toMatch(/^\/home {4}refused by per-user, try again in \d+ s$/);
  expect(lines[5]).toBe("bob's    allowed, 2 of 3 left under per-user");
});

test.skipIf(whyMissing("redis"))("the Redis example counts on two instances and refunds by id", async () => {
  await using redis = await startRedis();
  const lines = await runExample("redis.mjs", redis.url);
  expect(lines).toEqual([
    "here, first order:   allowed true, orders left 1",
    "there, sent again:   allowed true, orders left 1 (the same id is charged once)",
    "there, second order: allowed true, orders left 0",
    "here, third order:   allowed false, refused by orders",
    "                     requests left 98 (the refused one was charged nowhere)",
    "there, refund:       true, and once more: false",
    "there, order anew:   allowed true, orders left 0",
  ]);
});

test("without a Redis, the Redis example says so and exits with 1", async () => {
  const failed = runExample("redis.mjs", `redis://127.0.0.1:${await freePort()}`);
  await expect(failed).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("no Redis answers") });
});

test.skipIf(whyMissing("redis"))(
  "the prefetch example decides in process, and admits no more than the limit",
  async () => {
    await using redis = await startRedis();
    const [sums, share] = await runExample("prefetch.mjs", redis.url);
    const admitted = Number(/^sent 30000, admitted (\d+) of 20000$/.exec(sums!)![1]);
    expect(admitted).toBeLessThanOrEqual(20_000);
    expect(admitted).toBeGreaterThan(10_000);
    expect(share).toMatch(/^decided in process: [1-9]\d{0,2} % of those$/);
  },
);

test.skipIf(whyMissing("redis"))("the regions example keeps one limit over two regions", async () => {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  try {
    const [sums, fetches] = await runExample("regions.mjs", ...servers.map(({ url }) => url));
    const admitted = Number(/^sent 4000, admitted (\d+) of 2000$/.exec(sums!)![1]);
    expect(admitted).toBeLessThanOrEqual(2_000);
    expect(admitted).toBeGreaterThan(1_000);
    expect(fetches).toMatch(/^fetches home: [1-9]/);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
});

test("the waiting example gives turns in order, and the fourth caller the turn that the third left", async () => {
  const lines = await runExample("waiting.mjs");
  expect(lines.map((line) => line.replace(/^[\d.]+ s {2}/, ""))).toEqual([
    "first: my turn",
    "third: left, my turn is free",
    "second: my turn",
    "fourth: my turn",
  ]);
});

test("the adapt example lowers the limit of a busy backend, and raises it again", async () => {
  expect(await runExample("adapt.mjs")).toEqual([
    "utilisation 1: the limit went down from 100 to 70",
    "utilisation 1: the limit went down from 70 to 49",
    expect.stringMatching(/^utilisation 0.35: the limit went up from \d+ to \d+$/),
    expect.stringMatching(/^utilisation 0.35: the limit went up from \d+ to \d+$/),
  ]);
});

test("the load-shedding example serves what is critical, and some of the rest", async () => {
  const lines = await runExample("load-shedding.mjs");
  expect(lines).toEqual(["critical: 30 of 30 served", "normal: some of 270 served"]);
});

test("the concurrency example renews one lease, loses another, and hands its place on", async () => {
  const lines = await runExample("concurrency.mjs");
  expect(lines).toEqual([
    "long, renewed: started",
    "stuck, not renewed: started",
    "third: refused, all places are taken",
    "stuck, not renewed: stopped, the lease was lost: it ended before it was renewed",
    "fourth: started",
    "fourth: done",
    "long, renewed: done",
  ]);
});
