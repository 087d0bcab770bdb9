/**
 * A server that answers scripts with nonsense, through both real clients: each request is left to its rule's policy, by one error that
 * names what was expected and what came. No nonsense is a permission, a crash, or a log line of its own making.
 */
import assert from "node:assert/strict";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { createLimiter, type Rule, SluiceError, type Store } from "sluice";
import { type RedisClient, redisStore } from "sluice/redis";
import { expect, test } from "vitest";
import type { PoolFill } from "../../packages/sluice/src/algorithms/pool.js";
import { heldCounters } from "../../packages/sluice/src/store/reserved.js";
import type { StoreRequest } from "../../packages/sluice/src/store/store.js";
import { startFakeRedis } from "../harness/fake-redis.js";
import { randomOf } from "../harness/random.js";
import { postJson, startServiceProcess } from "../service/running-service.js";

const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
const REPLIES = 2_500;
/** Nothing but what a terminal prints, however long or strange the reply was. */
const CLEAR = /^[\x20-\x7e…]{1,900}$/;

const number = (n: number): string => `:${n}\r\n`;
const text = (value: string): string => `$${Buffer.byteLength(value)}\r\n${value}\r\n`;
const array = (parts: readonly string[]): string => `*${parts.length}\r\n${parts.join("")}`;
/** None of them is a number. */
const noNumbers = [
  "$-1\r\n",
  "*-1\r\n",
  "*0\r\n",
  text(""),
  text("NaN"),
  text("Infinity"),
  text("0x10"),
  text("1e999"),
  text("1 "),
  text("\u202e\u0000\r\n\u001b[31mallowed"),
  text("x".repeat(20_000)),
  text("3 f e1 e1\n1 1 9 0\n{}"),
  text("3 f e1 e1\nNaN\n{}"),
  text("2 f\n"),
  "+OK\r\n",
  "-ERR nonsense \u001b[2J\r\n",
  "-CALENDAR 99999999999999999999\r\n",
  array([number(1), number(1)]),
];
/** As decide-plain.lua and decide.lua answer a request of one check that passes. */
const passes = [
  [1_700_000_000_000_000, 1, 9, 1_000],
  [1_700_000_000_000_000, 3, 9, 1_000],
];

/** What a script never returns, of a hundred kinds. */
function nonsense(below: (n: number) => number): string {
  const any = (): string => noNumbers[below(noNumbers.length)]!;
  const good = passes[below(passes.length)]!.map(number);
  const at = below(good.length);
  switch (below(6)) {
    case 0:
      return any();
    case 1:
      return number(below(5));
    case 2:
      return array(good.with(at, any()));
    case 3:
      return array(good.slice(0, at));
    case 4:
      return array([...good, number(below(5)), any()]);
    default:
      return array(good.with(1, number([-7, 24, 63, 1_000_000_000, 2 ** 52][below(5)]!)));
  }
}

const fixed: Rule = {
  id: "fixed",
  key: ["user"],
  algorithm: "fixed-window",
  limit: 10,
  window: "1m",
  onStoreFailure: "deny",
};
const rules: Rule[] = [
  { ...fixed, match: { path: "/one" } },
  { ...fixed, id: "bucket", algorithm: "token-bucket", match: { path: "/two" } },
  { ...fixed, id: "rolling", algorithm: "rolling-window", match: { path: "/two" } },
];

const clients: readonly [name: string, open: (url: string) => Promise<{ client: RedisClient; close(): void }>][] = [
  [
    "ioredis",
    async (url) => {
      const client = new Redis(url);
      return { client, close: () => client.disconnect() };
    },
  ],
  [
    "node-redis",
    async (url) => {
      const client = createClient({ url });
      client.on("error", () => {});
      await client.connect();
      return { client: client as unknown as RedisClient, close: () => client.destroy() };
    },
  ],
];

test.each(clients)(`%s: of ${REPLIES} nonsensical replies none is a permission, seed ${seed}`, async (_, open) => {
  const random = randomOf(seed);
  let replies = 0;
  await using server = await startFakeRedis({
    script() {
      replies++;
      return nonsense((n) => Math.floor(random() * n));
    },
  });
  const { client, close } = await open(server.url);
  const store = redisStore(client, { deadlineMs: 20_000, breakerFailures: 1_000, rememberRefusals: false });
  const causes: unknown[] = [];
  const watched: Store = Object.assign(Object.create(store), {
    decide: async (request: Parameters<Store["decide"]>[0]) => {
      try {
        return await store.decide(request);
      } catch (error) {
        causes.push(error);
        throw error;
      }
    },
    close: () => store.close(),
  });
  const limiter = createLimiter({ store: watched, rules });
  try {
    for (let i = 0; i < REPLIES; i++) {
      const options = i % 3 === 0 ? { id: `order-${i}` } : {};
      const decision = await limiter.check({ user: "ann", path: i % 2 === 0 ? "/one" : "/two" }, options);
      assert.equal(decision.allowed, false, JSON.stringify(decision));
      assert.equal(decision.degraded, "deny", JSON.stringify(decision));
    }
  } finally {
    await limiter.close();
    close();
  }
  expect(replies).toBeGreaterThanOrEqual(REPLIES);
  expect(causes).toHaveLength(REPLIES);
  let malformed = 0;
  for (const cause of causes) {
    assert.ok(cause instanceof SluiceError, String(cause));
    assert.equal(cause.code, "store-unavailable");
    assert.match(cause.message, CLEAR);
    if (/^Redis: malformed reply to a script: expected .+, got .+; check what answers/.test(cause.message)) malformed++;
  }
  // The others are errors that the server itself reported.
  expect(malformed).toBeGreaterThan(REPLIES / 2);
  expect(store.stats().errors).toBeGreaterThanOrEqual(malformed);
});

test.each([
  [
    "no array",
    text("hello\u001b\r\n"),
    'an array of now_us and verdicts, got a text of 8 characters, "hello\\u001b\\u000d\\u000a"',
  ],
  ["nothing", "$-1\r\n", "an array of now_us and verdicts, got null"],
  ["an empty array", "*0\r\n", "a number as element 0 of 0, got nothing"],
  ["a short array", array([1, 1, 9].map(number)), "a number as element 3 of 3, got nothing"],
  [
    "a text as a count",
    array([number(1), text("x"), number(9)]),
    'how many of 1 passed as element 1 of 3, got a text of 1 characters, "x"',
  ],
  [
    "too many that passed",
    array([1, 2 ** 40, 9, 9].map(number)),
    "how many of 1 passed as element 1 of 4, got 1099511627776",
  ],
  ["an unknown reason", array([1, 0, 0, 5, 5, 77].map(number)), "a reason's code as element 5 of 6, got 77"],
  ["too much", array([1, 1, 9, 9, 9].map(number)), "4 elements, got an array of 5"],
])("%s is named as it came, beside what was expected", async (_, reply, words) => {
  await using server = await startFakeRedis({ script: () => reply });
  const store = redisStore(server.url, { deadlineMs: 20_000 });
  let cause: unknown;
  const decide = store.decide.bind(store);
  store.decide = async (request) => {
    try {
      return await decide(request);
    } catch (error) {
      cause = error;
      throw error;
    }
  };
  const limiter = createLimiter({ store, rules });
  try {
    expect(await limiter.check({ user: "ann", path: "/one" })).toMatchObject({ allowed: false, degraded: "deny" });
    expect(String(cause)).toContain(`Redis: malformed reply to a script: expected ${words}`);
  } finally {
    await limiter.close();
  }
});

/** What the limiter asks a store for such a request. */
async function requestOf(rule: Rule, attributes: Record<string, string | number>): Promise<StoreRequest> {
  let request: StoreRequest | undefined;
  const decide = async (asked: StoreRequest): Promise<never> => {
    request = asked;
    throw new SluiceError("store-unavailable", "asks only");
  };
  const store = { decide, close: () => {} } as unknown as Store;
  const limiter = createLimiter({ store, rules: [rule] });
  await limiter.check(attributes);
  await limiter.close();
  return request!;
}

test.each([
  ["one Redis", "url"],
  ["a cluster", "clusterUrl"],
] as const)("%s: no other operation believes nonsense", async (_, url) => {
  const nonsensical = text("\u202enonsense");
  await using server = await startFakeRedis({ script: () => nonsensical, read: () => array([nonsensical]) });
  const store = redisStore(server[url], { deadlineMs: 20_000, breakerFailures: 1_000 });
  const { checks } = await requestOf(fixed, { user: "ann" });
  const estimate = { default: 5, ttl: "1m" } as const;
  const held = await requestOf({ ...fixed, cost: { attribute: "tokens" }, estimate }, { user: "ann" });
  const counters = heldCounters(held.checks, () => held.entryId);
  expect(counters).toHaveLength(1);
  const reserved = { ttlMs: 60_000, counters };
  const tokens = new Map([["tokens", 3]]);
  const lease = { places: [{ key: "k", entryId: "e", places: 1, ttlMs: 1_000 }] };
  const charges = [{ check: checks[0]!, atMs: 1, entryId: "e", owed: 0 }];
  const fill: PoolFill = {
    seq: 1,
    isAnswered: true,
    units: 1,
    kept: 0,
    unitsEndMs: 1,
    lowPart: 0,
    renewAtMs: 0,
    refusedForMs: 0,
    refusedCost: 0,
    retryAfterMs: 0,
    resetAfterMs: 0,
    rate: 1,
    share: 1,
  };
  const calls: Record<string, () => unknown> = {
    recall: () => store.recall("order-1"),
    refund: () => store.refund({ charges, id: undefined }),
    "refund by id": () => store.refund({ charges, id: "order-1" }),
    giveBack: () => store.giveBack(checks),
    release: () => store.release(lease),
    renew: () => store.renew(lease),
    settle: () => store.settle(reserved, tokens),
    extend: () => store.extend(reserved, tokens),
    holdState: () => store.holdState(reserved),
    learn: () => store.learn("costs", new Map()),
    block: () => store.block("k", 1_000),
    inspect: () => store.inspect(checks),
    reset: () => store.reset(checks.map(({ key }) => key)),
    askForPool: () => store.askForPool("k", { name: 1, onlySeq: 0, givesBack: "no", leaseMs: 1 }),
    fillPool: () => store.fillPool("k", fill),
    shareReports: () => store.shareReports(),
    shareLimits: () => store.shareLimits({ instance: "i", leadsMs: 1_000, limits: [] }),
  };
  try {
    const outcomes: Record<string, string> = {};
    for (const [name, call] of Object.entries(calls)) {
      outcomes[name] = await Promise.resolve(call()).then(JSON.stringify, (error: SluiceError) => error.message);
    }
    const clear = /^Redis: malformed reply to a script: expected an? .*(nonsense"|an array of 1); check what/;
    for (const name of Object.keys(calls)) assert.match(outcomes[name]!, clear, name);
  } finally {
    await store.close();
  }
});

test("the service on such a server decides by policy, answers its pages, and logs lines of its own only", async () => {
  const random = randomOf(seed);
  const any = (): string => nonsense((n) => Math.floor(random() * n));
  await using server = await startFakeRedis({ script: any, read: any });
  const service = await startServiceProcess({
    rules,
    settings: { store: server.url, "admin-token": "an-admin-token-of-this-test", "log-level": "debug" },
  });
  try {
    for (let i = 0; i < 200; i++) {
      const { status, body } = await postJson(`${service.http}/v1/check`, {
        attributes: { user: "ann", path: i % 2 === 0 ? "/one" : "/two" },
      });
      assert.deepEqual([status, body.allowed, body.degraded], [200, false, "deny"], JSON.stringify(body));
    }
    for (const path of ["stats", "keys/top", "alerts", "store", "rules"]) {
      const headers = { authorization: "Bearer an-admin-token-of-this-test" };
      const answer = await fetch(`${service.http}/admin/v1/${path}`, { headers });
      assert.ok([200, 503].includes(answer.status), `${path} ${answer.status} ${await answer.text()}`);
    }
  } finally {
    expect(await service.end()).toBe(0);
  }
  assert.match(service.output(), /^[\x20-\x7e\n·→…]+$/u);
  for (const line of service.output().split("\n")) {
    if (line.includes("nonsense")) assert.equal(JSON.parse(line).constructor, Object, line);
  }
});
