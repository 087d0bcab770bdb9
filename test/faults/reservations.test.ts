/** Reservations on a real Redis when instances die, race or lose the store. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test as vitest } from "vitest";
import {
  createLimiter,
  type Limiter,
  type Rule,
  type Settlement,
  type SluiceError,
} from "../../packages/sluice/src/index.js";
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
  const told = { expired: new Set<string>(), settled: 0 };
  limiter.on("expired", (id) => told.expired.add(id));
  limiter.on("settled", () => told.settled++);
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
  // Each instance reports the end of its own: nobody reports that of the dead one's, though their ids were seen here.
  await expect.poll(() => limiter.reservationStats().expired, { timeout: 20_000 }).toBe(100);
  expect(new Set(others.flatMap(({ reservation }) => reservation?.id ?? []))).toEqual(told.expired);
  expect(told.settled).toBe(early.filter(({ settled }) => settled).length);
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

test("settlements, a cancellation and an extension that race each other and the end of the term agree, and are charged once", async () => {
  const limit = 10_000_000;
  const rule: Rule = { ...bytes, id: "ending", limit, estimate: { default: 100, ttl: "1s" } };
  const [one, other] = [instance(rule), instance(rule)];
  const race = async (n: number): Promise<Settlement> => {
    const { reservation } = await one.check({ org: "a" });
    const { id } = reservation!;
    // A few before the end, a few behind it, most of them about then.
    await new Promise((resolve) => setTimeout(resolve, 850 + n));
    const [extended, ...settlements] = await Promise.all([
      one.extend(id, { bytes: 150 }).catch((error: SluiceError) => error.code),
      other.settle(id, { bytes: 10 + n }),
      one.cancel(id),
      other.settle(id, { bytes: 1 }),
    ]);
    for (const settlement of settlements) expect(settlement).toEqual(settlements[0]);
    if (typeof extended === "string") expect(extended).toBe("unknown-reservation");
    return settlements[0]!;
  };
  const all = await Promise.all(Array.from({ length: 200 }, (_, n) => race(n)));
  const ended = all.filter(({ reason }) => reason === "expired").length;
  console.log(`200 reservations at their end: ${ended} expired, ${all.length - ended} settled or cancelled`);
  const { remaining } = await other.peek({ org: "a" }, { cost: 0 });
  expect(limit - remaining!).toBe(all.reduce((sum, { charged }) => sum + charged.ending!, 0));
  await Promise.all([one.close(), other.close()]);
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

test("a check while Redis is away is held and settled by this instance, at its share, and Redis hears nothing of it", async () => {
  const own = await startRedis();
  const rule: Rule = { ...bytes, id: "apart", limit: 1_000, estimate: { default: 400, ttl: "1h" } };
  const limiter = createLimiter({
    store: redisStore(own.url, { deadlineMs: 300 }),
    instances: 2,
    rules: [{ ...rule, onStoreFailure: "local" }],
  });
  await limiter.check({ org: "a", bytes: 100 });
  own.pause();
  const settled: Settlement[] = [];
  limiter.on("settled", (_, settlement) => settled.push(settlement));
  const { allowed, degraded, reservation } = await limiter.check({ org: "a" });
  expect([allowed, degraded, reservation!.held]).toEqual([true, "local", { apart: 400 }]);
  // Half of the limit is this instance's: 100 are left of it.
  expect(await limiter.check({ org: "a" })).toMatchObject({ allowed: false, remaining: 100 });
  expect(await limiter.extend(reservation!.id, { bytes: 450 })).toMatchObject({ allowed: true });
  expect(await limiter.settle(reservation!.id, { bytes: 50 })).toEqual({
    settled: true,
    charged: { apart: 50 },
    overrun: {},
  });
  expect((await limiter.peek({ org: "a" }, { cost: 0 })).remaining).toBe(450);
  own.resume();
  expect(settled).toHaveLength(1);
  expect(limiter.reservationStats()).toMatchObject({ opened: 1, settled: 1, pending: 0 });
  await expect.poll(async () => (await limiter.peek({ org: "a" }, { cost: 0 })).degraded).toBeUndefined();
  expect((await limiter.peek({ org: "a" }, { cost: 0 })).remaining).toBe(900);
  expect(await limiter.settle(reservation!.id, { bytes: 9 })).toMatchObject({ charged: { apart: 50 } });
  await limiter.close();
  await own.stop();
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
