/** Redis: the same workloads through Sluice and through its peers, on one connection of the same client each, in one run. */
import { Redis } from "ioredis";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";
import { drive, interleaved } from "./measure.mjs";
import { fastifyRateLimit, rateLimiterFlexible, rateLimitRedis } from "./peers.mjs";

const PEER = "rate-limiter-flexible, fixed window";

const KEYS = 10_000;
const users = Array.from({ length: KEYS }, (_, i) => `user-${i}`);
const uniform = (n) => users[(n * 7919) % KEYS];
const rolling = { algorithm: "rolling-window", window: "1m" };

/** Zipf with exponent 1 over the users, drawn once, the same for all. */
const zipf = (() => {
  const weights = users.map((_, i) => 1 / (i + 1));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let seed = 42;
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const drawn = Array.from({ length: 20_000 }, () => {
    let left = random() * total;
    let i = 0;
    while (i < KEYS - 1 && left > weights[i]) left -= weights[i++];
    return users[i];
  });
  return (n) => drawn[n % drawn.length];
})();

/** Workloads: who asks, under which limit, how many at once. */
const workloads = [
  {
    name: "uniform keys, limit 100, 256 in flight",
    key: uniform,
    limit: 100,
    inFlight: 256,
    count: 60_000,
    allPeers: true,
  },
  { name: "uniform keys, limit 100, 32 in flight", key: uniform, limit: 100, inFlight: 32, count: 40_000 },
  { name: "uniform keys, limit 100, 1 in flight", key: uniform, limit: 100, inFlight: 1, count: 10_000 },
  { name: "Zipf keys, limit 1000, 256 in flight", key: zipf, limit: 1_000, inFlight: 256, count: 60_000 },
  {
    name: "one hot key, limit never reached, 256 in flight",
    key: () => "hot",
    limit: 10_000_000,
    bucket: true,
    inFlight: 256,
    count: 60_000,
  },
  { name: "attack: 95 % refused, 256 in flight", key: (n) => users[n % 20], limit: 150, inFlight: 256, count: 60_000 },
];

export async function redisSection(redis, { repetitions, quick }) {
  const sections = [];
  for (const workload of workloads) {
    const count = quick ? Math.floor(workload.count / 3) : workload.count;
    sections.push(await runWorkload(redis, { ...workload, count }, repetitions));
  }
  sections.push(await threeRules(redis, { repetitions, count: quick ? 10_000 : 40_000 }));
  sections.push(await lone(redis, { repetitions, count: quick ? 2_000 : 10_000 }));
  sections.push(await limits(redis, { repetitions, quick }));
  return sections;
}

function ours(redis, rules, options = {}) {
  return createLimiter({ store: redisStore(redis.url, { deadlineMs: 10_000, ...options }), rules });
}

/** Each run starts on an empty Redis; the peer's refusals come as rejections. */
const runner = (redis, load, decide) => async () => {
  await redis.admin.flushall();
  await redis.admin.config("RESETSTAT");
  const figures = await drive({ ...load, redis }, decide);
  return { ...figures, callsPerDecision: (await redis.evalshaCalls()) / load.count };
};

async function runWorkload(redis, workload, repetitions) {
  const numbers = workload.bucket ? { algorithm: "token-bucket", window: "1m" } : rolling;
  const load = { count: workload.count, inFlight: workload.inFlight };
  // A limiter of its own for each run: what one remembers of a refusal must not answer the next one's traffic.
  const throughPeer = (open, options) => async () => {
    const peer = await open(redis.url, workload.limit, options);
    const figures = await runner(redis, load, (n) => peer.check(workload.key(n)))();
    peer.close();
    return figures;
  };
  const contestants = {
    [PEER]: throughPeer(rateLimiterFlexible, {}),
    [`sluice, ${workload.bucket ? "token bucket" : "rolling window (exact)"}`]: async () => {
      const limiter = ours(redis, [{ id: "r", key: ["user"], limit: workload.limit, ...numbers }]);
      await limiter.ready();
      const figures = await runner(redis, load, (n) => limiter.check({ user: workload.key(n) }))();
      await limiter.close();
      return figures;
    },
  };
  if (workload.name.startsWith("attack")) {
    contestants["rate-limiter-flexible, in-memory block"] = throughPeer(rateLimiterFlexible, {
      inMemoryBlockOnConsumed: workload.limit,
    });
  }
  if (workload.allPeers) {
    contestants["express-rate-limit's Redis store, fixed window"] = throughPeer(rateLimitRedis);
    contestants["@fastify/rate-limit's Redis store, fixed window"] = throughPeer(fastifyRateLimit);
  }
  const results = await interleaved(contestants, repetitions);
  return { title: workload.name, base: PEER, results };
}

async function threeRules(redis, { repetitions, count }) {
  const rules = [
    { id: "per-user", key: ["user"], limit: 1_000_000, ...rolling, algorithm: "token-bucket" },
    { id: "per-path", key: ["path"], limit: 1_000_000, ...rolling, algorithm: "token-bucket" },
    { id: "all", key: [], limit: 100_000_000, ...rolling, algorithm: "token-bucket" },
  ];
  const limiter = ours(redis, rules);
  await limiter.ready();
  const each = await rateLimiterFlexible(redis.url, 100_000_000);
  const load = { count, inFlight: 256 };
  const results = await interleaved(
    {
      "rate-limiter-flexible, three calls": runner(redis, load, (n) =>
        Promise.all([each.check(uniform(n)), each.check(`/v1/${n % 50}`), each.check("all")]),
      ),
      "sluice, one decision": runner(redis, load, (n) => limiter.check({ user: uniform(n), path: `/v1/${n % 50}` })),
    },
    repetitions,
  );
  each.close();
  await limiter.close();
  return { title: "three rules a request, 256 in flight", base: "rate-limiter-flexible, three calls", results };
}

async function lone(redis, { repetitions, count }) {
  const client = new Redis(redis.url);
  const sha = await client.script("LOAD", "return redis.call('INCR', KEYS[1])");
  const limiter = ours(redis, [{ id: "r", key: ["user"], limit: 100_000, ...rolling }]);
  await limiter.ready();
  const load = { count, inFlight: 1 };
  const results = await interleaved(
    {
      "bare EVALSHA of one INCR": async () => {
        const reloaded = runner(redis, load, (n) => client.evalsha(sha, 1, uniform(n)));
        return await reloaded();
      },
      "sluice, rolling window (exact)": runner(redis, load, (n) => limiter.check({ user: uniform(n) })),
    },
    repetitions,
  );
  client.disconnect();
  await limiter.close();
  return { title: "a lone check, idle", base: "bare EVALSHA of one INCR", results };
}

/** What a decision costs as the log grows: nearly full logs of each limit, as many keys and decisions each. */
async function limits(redis, { repetitions, quick }) {
  const keys = quick ? 50 : 200;
  const each = 5;
  const contestants = {};
  for (const limit of [10, 100, 1_000, 100_000]) {
    contestants[`limit ${limit.toLocaleString("en-US")}`] = async () => {
      const limiter = ours(redis, [{ id: "r", key: ["user"], limit, algorithm: "rolling-window", window: "1h" }]);
      await limiter.ready();
      await redis.admin.flushall();
      for (let i = 0; i < keys; i++) await limiter.check({ user: users[i] }, { cost: limit - each });
      const decide = (n) => limiter.check({ user: users[n % keys] });
      const figures = await drive({ count: keys * each, inFlight: 32, redis }, decide);
      await limiter.close();
      return figures;
    };
  }
  const results = await interleaved(contestants, quick ? repetitions : repetitions * 3);
  return { title: "packed rolling window of an hour, nearly full, 32 in flight", base: "limit 100", results };
}
