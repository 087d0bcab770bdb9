/**
 * `onStoreFailure: local` over several processes: while Redis lives they see each other through it; when it is gone each admits its share, and
 * all together no more than the limit.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterEach, describe, expect, test } from "vitest";
import { INSTANCES_KEY, KEY_PREFIX } from "../../packages/sluice/src/keys.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { leashProcess } from "../harness/leash.js";
import { until } from "../harness/redis-cluster.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const LIMIT = 30;
const racerFile = fileURLToPath(new URL("local-racer.mjs", import.meta.url));

interface Racer {
  readonly child: ChildProcess;
  ask(checks: number): Promise<{ admitted: number; byPolicy: number }>;
  end(): Promise<void>;
}

async function startRacer(url: string): Promise<Racer> {
  const child = spawn(process.execPath, [racerFile, url, String(LIMIT)], { stdio: ["pipe", "pipe", "inherit"] });
  leashProcess(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await lines.next();
  return {
    child,
    async ask(checks) {
      child.stdin.write(`ask ${checks}\n`);
      return JSON.parse((await lines.next()).value);
    },
    async end() {
      child.stdin.write("end\n");
      await exited;
    },
  };
}

describe.skipIf(whyMissing("redis"))("instances that share a limit without their store", () => {
  let redis: RedisServer;
  let racers: Racer[] = [];
  const start = async (count: number): Promise<void> => {
    racers.push(...(await Promise.all(Array.from({ length: count }, () => startRacer(redis.url)))));
  };
  const counted = async (): Promise<number> => Number(await redis.cli("ZCARD", KEY_PREFIX + INSTANCES_KEY));
  /** Until all have heard of each other: a beat a second. */
  const settled = async (count: number): Promise<void> => {
    await until(`${count} instances are counted`, async () => (await counted()) === count);
    await sleep(1_500);
  };

  afterEach(async () => {
    for (const { child } of racers) child.kill("SIGKILL");
    racers = [];
    await redis?.stop();
  });

  test("three admit a third each; one that was killed is no longer counted, one that joined is", async () => {
    redis = await startRedis();
    await start(3);
    await settled(3);
    await redis.kill();
    const before = await Promise.all(racers.map((racer) => racer.ask(LIMIT)));
    console.log(
      `local: 3 instances admitted ${before.map(({ admitted }) => admitted).join(" + ")} of a limit of ${LIMIT}`,
    );
    expect(before).toEqual(before.map(() => ({ admitted: LIMIT / 3, byPolicy: LIMIT })));

    await redis.restart();
    racers.shift()!.child.kill("SIGKILL");
    await settled(2);
    // What is known falls only after it has held: until then shares are too small rather than too large.
    await sleep(4_000);
    await start(3);
    await settled(5);
    await redis.kill();
    const after = await Promise.all(racers.map((racer) => racer.ask(LIMIT)));
    const [old, joined] = [after.slice(0, 2), after.slice(2)];
    console.log(
      `local: two stayed (${old.map(({ admitted }) => admitted).join(" + ")} more), three joined (${joined.map(({ admitted }) => admitted).join(" + ")})`,
    );
    // The two that stayed have used more than their new share; in the window they get nothing more.
    expect(old.map(({ admitted }) => admitted)).toEqual([0, 0]);
    expect(joined.map(({ admitted }) => admitted)).toEqual([LIMIT / 5, LIMIT / 5, LIMIT / 5]);
  }, 60_000);

  test("one that leaves in good order makes the others' shares grow", async () => {
    redis = await startRedis();
    await start(2);
    await settled(2);
    await racers.pop()!.end();
    expect(await counted()).toBe(1);
    await sleep(4_500);
    await redis.kill();
    expect(await racers[0]!.ask(LIMIT + 10)).toEqual({ admitted: LIMIT, byPolicy: LIMIT + 10 });
  });

  test("instances are counted only where a rule shares its limit, and the number may be told instead", async () => {
    redis = await startRedis();
    const rule: Rule = { id: "r", key: [], algorithm: "fixed-window", limit: 10, window: "1h" };
    const allowing: Rule = { ...rule, onStoreFailure: "allow" };
    const plain = createLimiter({ store: redisStore(redis.url, { deadlineMs: 2_000 }), rules: [allowing] });
    const told = createLimiter({
      store: redisStore(redis.url, { deadlineMs: 2_000 }),
      rules: [{ ...rule, onStoreFailure: "local" }],
      instances: 5,
    });
    await Promise.all([plain.check({}), told.check({})]);
    expect(await redis.cli("EXISTS", KEY_PREFIX + INSTANCES_KEY)).toBe("0");
    plain.setRules([rule]);
    await until("it is counted", async () => (await counted()) === 1);
    expect(Number(await redis.cli("PTTL", KEY_PREFIX + INSTANCES_KEY))).toBeGreaterThan(0);
    await plain.close();
    expect(await redis.cli("EXISTS", KEY_PREFIX + INSTANCES_KEY)).toBe("0");
    await redis.kill();
    let admitted = 0;
    for (let i = 0; i < 10; i++) if ((await told.check({})).allowed) admitted++;
    expect(admitted).toBe(2);
    await told.close();
  });
});
