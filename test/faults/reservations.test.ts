/** Reservations on a real Redis when instances die, race or lose the store. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test as vitest } from "vitest";
import { createLimiter, type Limiter, type Rule } from "../../packages/sluice/src/index.js";
import { redisStore } from "../../packages/sluice/src/redis.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { leashProcess } from "../harness/leash.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const test = vitest.skipIf(whyMissing("redis"));

let redis: RedisServer;
beforeAll(async () => {
  if (!whyMissing("redis")) redis = await startRedis();
});
afterAll(() => redis?.stop());

const bytes: Rule = {
  id: "bytes",
  key: ["org"],
  algorithm: "fixed-window",
  limit: 110_000,
  window: "3650d",
  cost: { attribute: "bytes" },
  estimate: { default: 100, ttl: "4s" },
};

const instance = (rule: Rule): Limiter =>
  createLimiter({ store: redisStore(redis.url, { deadlineMs: 30_000 }), rules: [rule] });

async function firstLine(child: ChildProcess): Promise<string> {
  const [line] = (await once(createInterface({ input: child.stdout! }), "line")) as [string];
  return line;
}

test("after kill -9 of an instance with 1000 open reservations no more is admitted than was left, and all are accounted for", async () => {
  const script = fileURLToPath(new URL("reserving-process.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, redis.url, JSON.stringify(bytes)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  leashProcess(child);
  const ids = JSON.parse(await firstLine(child)) as string[];
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(new Set(ids).size).toBe(1_000);

  const limiter = instance(bytes);
  // What the dead instance holds is held: of 110 000 units 10 000 are left.
  const others = await Promise.all(Array.from({ length: 150 }, () => limiter.check({ org: "acme" })));
  expect(others.filter(({ allowed }) => allowed)).toHaveLength(100);
  // Whoever knows the ids may settle them; those that nobody settles stand as spent.
  const early = await Promise.all(ids.slice(0, 300).map((id) => limiter.settle(id, { bytes: 7 })));
  await new Promise((resolve) => setTimeout(resolve, 4_500));
  const late = await Promise.all(ids.map((id) => limiter.settle(id, { bytes: 3 })));
  const charged = late.reduce((sum, { charged: units }) => sum + units.bytes!, 0);
  // Sent again, each answers as before.
  for (const [i, settlement] of early.entries()) expect(late[i]).toEqual(settlement);
  expect(late.filter(({ reason }) => reason === "expired").length).toBeGreaterThanOrEqual(700);
  const { remaining } = await limiter.peek({ org: "acme" }, { cost: 0 });
  expect(remaining).toBe(110_000 - charged - 100 * 100);
  await limiter.close();
});

test("of many settlements of one reservation from two instances, at once and at different costs, one counts", async () => {
  const rule: Rule = { ...bytes, id: "raced", estimate: { default: 100, ttl: "1h" } };
  const instances = [instance(rule), instance(rule)];
  const { reservation } = await instances[0]!.check({ org: "a" });
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) => instances[i % 2]!.settle(reservation!.id, { bytes: 10 * i })),
  );
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  const { remaining } = await instances[1]!.peek({ org: "a" }, { cost: 0 });
  expect(110_000 - remaining!).toBe(answers[0]!.charged.raced);
  await Promise.all(instances.map((limiter) => limiter.close()));
});

test("what one instance learns, another that shares the store holds", async () => {
  const rule: Rule = { ...bytes, id: "learned", estimate: { default: 200, ttl: "1h" } };
  const [teacher, pupil] = [instance(rule), instance(rule)];
  const decisions = await Promise.all(Array.from({ length: 520 }, () => teacher.check({ org: "a" })));
  await Promise.all(decisions.map(({ reservation }) => teacher.settle(reservation!.id, { bytes: 64 })));
  await teacher.close();
  // The first estimate asks the store; what it answers is there for those that follow.
  await expect
    .poll(async () => (await pupil.check({ org: "b" })).reservation!.held.learned, { timeout: 20_000 })
    .toBeLessThan(80);
  await pupil.close();
});

test("a settlement while Redis is away is kept, and counts when Redis is back", async () => {
  const own = await startRedis();
  const rule: Rule = { ...bytes, id: "kept", estimate: { default: 100, ttl: "1h" } };
  const limiter = createLimiter({ store: redisStore(own.url, { deadlineMs: 300 }), rules: [rule] });
  const { reservation } = await limiter.check({ org: "a" });
  own.pause();
  expect(await limiter.settle(reservation!.id, { bytes: 30 })).toMatchObject({ settled: false, reason: "pending" });
  own.resume();
  await expect.poll(() => limiter.reservationStats(), { timeout: 60_000 }).toMatchObject({ pending: 0, settled: 1 });
  expect(await limiter.settle(reservation!.id, { bytes: 1 })).toMatchObject({ charged: { kept: 30 } });
  await limiter.close();
  await own.stop();
});
