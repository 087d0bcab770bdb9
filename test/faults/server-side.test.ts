/** What an operator or the server itself does to a client's connections: each ends by itself, and `degraded` names the cause, once. */
import { Redis } from "ioredis";
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { until } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";

const rule: Rule = {
  id: "r",
  key: ["user"],
  algorithm: "rolling-window",
  limit: 1_000_000,
  window: "1h",
  onStoreFailure: "deny",
};

interface Fault {
  readonly name: string;
  /** Breaks it, by a connection that stands before; resolves with what mends it. */
  readonly breaks: (operator: Redis) => Promise<() => Promise<unknown>>;
  readonly cause: RegExp;
}

const dropOthers = (operator: Redis): Promise<unknown> =>
  operator.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");

const faults: Fault[] = [
  {
    name: "maxclients is lowered to 1",
    breaks: async (operator) => {
      await operator.config("SET", "maxclients", "1");
      await dropOthers(operator);
      return () => operator.config("SET", "maxclients", "1000");
    },
    cause: /max number of clients/,
  },
  {
    name: "the password is rotated",
    breaks: async (operator) => {
      await operator.config("SET", "requirepass", "new");
      await dropOthers(operator);
      return () => operator.config("SET", "requirepass", "old");
    },
    cause: /WRONGPASS.*check the user and the password/,
  },
  {
    name: "Redis loads its data anew",
    breaks: async (operator) => {
      await operator.call("DEBUG", "POPULATE", "4000");
      const loaded = operator.call("DEBUG", "RELOAD");
      return () => loaded;
    },
    cause: /LOADING/,
  },
  {
    name: "Redis sleeps",
    breaks: async (operator) => {
      const awake = operator.call("DEBUG", "SLEEP", "1.5");
      return () => awake;
    },
    cause: /no answer within/,
  },
];

describe.skipIf(whyMissing("redis"))("on the server's side", () => {
  const slowToLoad = ["--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"];

  test.each(faults)("$name: policies answer, the cause is named once, and it heals", async ({ breaks, cause }) => {
    await using redis = await startRedis({
      args: ["--requirepass", "old", ...slowToLoad],
      cliArgs: ["-a", "old", "--no-auth-warning"],
      urgent: true,
    });
    const operator = new Redis({ port: redis.port, password: "old" });
    const store = redisStore(`redis://:old@127.0.0.1:${redis.port}`, { deadlineMs: 200, rememberRefusals: false });
    const limiter = createLimiter({ store, rules: [rule] });
    const causes: string[] = [];
    limiter.on("degraded", (error) => causes.push(String(error)));
    await until("the store answers", () => limiter.ready());
    const isDecided = async (): Promise<boolean> => (await limiter.check({ user: "u" })).degraded === undefined;
    expect(await isDecided()).toBe(true);

    const mend = await breaks(operator);
    await until("a cause is named", async () => {
      await isDecided();
      return causes.length > 0;
    });
    await mend();
    await until("checks are decided again", isDecided);
    expect(causes).toHaveLength(1);
    expect(causes[0]).toMatch(cause);
    await limiter.close();
    operator.disconnect();
  });

  test("connections that are killed again and again (CLIENT KILL) are made anew, and nothing is charged twice", async () => {
    await using redis = await startRedis({ urgent: true });
    const operator = new Redis(redis.url);
    const store = redisStore(redis.url, { deadlineMs: 2_000, rememberRefusals: false });
    const limiter = createLimiter({ store, rules: [rule] });
    await until("the store answers", () => limiter.ready());
    for (let i = 0; i < 20; i++) {
      const id = `order-${i}`;
      const [first] = await Promise.all([limiter.check({ user: "u" }, { id }), dropOthers(operator)]);
      if (first.degraded !== undefined) {
        await until("it is decided", async () => (await limiter.check({ user: "u" }, { id })).degraded === undefined);
      }
    }
    await until("the store answers", () => limiter.ready());
    expect((await limiter.peek({ user: "u" }, { cost: 0 })).remaining).toBe(1_000_000 - 20);
    await limiter.close();
    operator.disconnect();
  });
});
