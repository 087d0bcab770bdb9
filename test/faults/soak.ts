/**
 * A soak: steady load on three instances that share a Redis Cluster, while faults of every kind come and go at random, and a judge's
 * table at the end. Every client's way leads through the fault proxy; nodes speak to each other directly, so that the faults are the
 * clients' and a failover is one by order, which loses nothing.
 * Three columns must be 0: admitted beyond the bound, charged twice, lost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Attributes, createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { freePort } from "../harness/free-port.js";
import { type RedisCluster, startCluster } from "../harness/redis-cluster.js";
import { startTcpFaultProxy, type TcpFaultProxy } from "../harness/tcp-fault-proxy.js";
import { type Answer, excesses, summary } from "./judge.js";
import { type FeatureTally, startFeatures } from "./soak-features.js";
import { startLoad } from "./steady-load.js";

export interface SoakResult {
  readonly checks: number;
  readonly byPolicy: number;
  readonly orders: number;
  readonly refunds: number;
  /** Reservations that were settled. */
  readonly settled: number;
  /** Of these, what units in hand, blocks and shedding did. */
  readonly features: FeatureTally;
  /** Refunds that were answered with false at once, while a charge stood. */
  readonly refundsDenied: number;
  /** How often each fault came. */
  readonly faults: Readonly<Record<string, number>>;
  /** Decided by Redis beyond the limit, or admitted locally beyond all instances' shares, in any window. */
  readonly beyondBound: number;
  readonly chargedTwice: number;
  /** Checks that were never answered or failed, and orders or refunds that did not arrive. */
  readonly lost: number;
}

const INSTANCES = 3;
const limit = { limit: 21, windowMs: 1_000 };
const ORDER_LIMIT = 1_000_000;
const accounts = Array.from({ length: 6 }, (_, i) => `a${i}`);
const rules: Rule[] = [
  // The default policy: each instance admits its share.
  { id: "hot", key: ["user"], algorithm: "rolling-window", limit: limit.limit, window: "1s" },
  {
    id: "orders",
    key: ["account"],
    algorithm: "rolling-window",
    limit: ORDER_LIMIT,
    window: "1d",
    onStoreFailure: "deny",
  },
  // Two counters in two slots: a reservation holds units of both.
  ...["spend-a", "spend-b"].map(
    (id): Rule => ({
      id,
      key: id === "spend-a" ? ["payer"] : ["payer", "model"],
      algorithm: id === "spend-a" ? "fixed-window" : "rolling-window",
      limit: ORDER_LIMIT,
      window: "3650d",
      cost: { attribute: "units" },
      // Long enough for every fault: one that expires stands as spent.
      estimate: { default: 40, ttl: "1h" },
      onStoreFailure: "deny",
    }),
  ),
];

export async function soak({ ms, random }: { ms: number; random: () => number }): Promise<SoakResult> {
  await using set = await startProxiedCluster();
  const { cluster, proxies } = set;
  const limiters = Array.from({ length: INSTANCES }, () =>
    createLimiter({
      store: redisStore(set.url, { deadlineMs: 200, rememberRefusals: false }),
      rules,
      instances: INSTANCES,
    }),
  );
  for (const limiter of limiters) while (!(await limiter.ready())) await sleep(50);
  const users = ["u0", "u1", "u2", "u3", "u4", "u5"];
  const load = startLoad({ limiters, users, perSecond: 300 });
  const orders = startOrders(limiters, random);
  const spending = startSpending(limiters, random);
  const features = startFeatures(set.url, random);
  const faults = await sendFaults({ ms, random, proxies, cluster });
  for (const proxy of proxies) proxy.latencyMs = 0;
  for (const limiter of limiters) while (!(await limiter.ready())) await sleep(50);
  const tally = await orders.stop();
  const spent = await spending.stop();
  const beside = await features.stop();
  await load.stop();
  const charged = await countCharged(
    limiters[0]!,
    accounts.map((account) => ({ account })),
  );
  const payers = accounts.map((payer) => ({ payer, model: "m", units: 0 }));
  // Each unit is charged to two counters.
  const spentCounted = await countCharged(limiters[0]!, payers);
  for (const limiter of limiters) await limiter.close();
  const expected = tally.orders - tally.refunds;
  const { checks, byPolicy, failures } = summary(load.history);
  return {
    checks,
    byPolicy,
    ...tally,
    settled: spent.settled,
    features: beside,
    faults,
    beyondBound:
      sumOf(excesses(load.history, limit)) + sumOf(excesses(locally(load.history), limit)) + beside.beyondBound,
    chargedTwice: Math.max(0, charged - expected) + Math.max(0, spentCounted - 2 * spent.units) + beside.chargedTwice,
    lost:
      beside.lost +
      failures.length +
      tally.refundsDenied +
      Math.max(0, expected - charged) +
      Math.max(0, 2 * spent.units - spentCounted) +
      spent.lost,
  };
}

/** What policies admitted, as the judge reads admissions: by the time of the answer, which is that of the decision. */
function locally(history: readonly Answer[]): Answer[] {
  return history
    .filter(({ degraded, allowed }) => degraded === "local" && allowed)
    .map((answer) => ({ ...answer, decidedAtMs: answer.answeredAtMs }));
}

function sumOf(found: readonly { count: number }[]): number {
  return found.reduce((sum, { count }) => sum + count, 0);
}

/** Orders with an id, one after the other for each account; repeated with the same id until one is decided. Some are refunded by their id. Each call goes to any instance. */
function startOrders(limiters: readonly Limiter[], random: () => number) {
  let running = true;
  const tally = { orders: 0, refunds: 0, refundsDenied: 0 };
  const anyLimiter = (): Limiter => limiters[Math.floor(random() * limiters.length)]!;
  // Asked again until it is known. Where an answer was lost, the next one is false: the first try gave back, or the count will tell.
  const refunded = async (id: string): Promise<boolean> => {
    for (let tries = 1; ; tries++) {
      const given = await anyLimiter()
        .refund(id)
        .catch(() => undefined);
      if (given !== undefined) return given || tries > 1;
      await sleep(20);
    }
  };
  const work = accounts.map(async (account) => {
    for (let n = 0; running; n++) {
      const id = `${account}-${n}`;
      const ask = () => anyLimiter().check({ account }, { id });
      let decision = await ask();
      for (; decision.degraded !== undefined; decision = await ask()) await sleep(20);
      tally.orders++;
      if (n % 4 === 0) {
        if (await refunded(id)) tally.refunds++;
        else tally.refundsDenied++;
      }
      await sleep(25);
    }
  });
  return {
    async stop() {
      running = false;
      await Promise.all(work);
      return tally;
    },
  };
}

/** Reservations: held at any instance, settled at any other, again until the store has said so. The last answer must name the true cost. */
function startSpending(limiters: readonly Limiter[], random: () => number) {
  let running = true;
  const tally = { settled: 0, units: 0, lost: 0 };
  const anyLimiter = (): Limiter => limiters[Math.floor(random() * limiters.length)]!;
  const work = accounts.map(async (payer) => {
    for (let n = 0; running; n++) {
      const ask = () => anyLimiter().check({ payer, model: "m" }, { id: `${payer}-spend-${n}` });
      let decision = await ask();
      for (; decision.degraded !== undefined; decision = await ask()) await sleep(20);
      const reservation = decision.reservation!.id;
      // Less than was held, or more.
      const units = Math.floor(random() * 80);
      const settle = () => anyLimiter().settle(reservation, { units });
      let settlement = await settle();
      for (; settlement.reason === "pending"; settlement = await settle()) await sleep(20);
      tally.settled++;
      tally.units += units;
      if (!settlement.settled || settlement.charged["spend-a"] !== units || settlement.charged["spend-b"] !== units)
        tally.lost++;
      await sleep(40);
    }
  });
  return {
    async stop() {
      running = false;
      await Promise.all(work);
      return tally;
    },
  };
}

async function countCharged(limiter: Limiter, keys: readonly Attributes[]): Promise<number> {
  const charged = await Promise.all(
    keys.map(async (key) => {
      for (;;) {
        const { checks, degraded } = await limiter.peek(key, { cost: 0 });
        if (degraded === undefined) return checks.reduce((sum, { remaining }) => sum + ORDER_LIMIT - remaining, 0);
        await sleep(50);
      }
    }),
  );
  return charged.reduce((sum, count) => sum + count, 0);
}

async function sendFaults(options: {
  ms: number;
  random: () => number;
  proxies: readonly TcpFaultProxy[];
  cluster: RedisCluster;
}): Promise<Record<string, number>> {
  const { ms, random, proxies, cluster } = options;
  const faults: Record<string, number> = {};
  const proxy = (): TcpFaultProxy => proxies[Math.floor(random() * proxies.length)]!;
  const kinds: Record<string, () => unknown> = {
    delay: async () => {
      const slow = proxy();
      slow.latencyMs = 20 + random() * 380;
      await sleep(300 + random() * 700);
      slow.latencyMs = 0;
    },
    cut: () => proxy().cut(),
    "half-open": () => void proxy().halfOpen(),
    "black hole": async () => {
      const lost = proxy();
      lost.blackhole(true);
      await sleep(300 + random() * 700);
      lost.blackhole(false);
    },
    "lost reply": () => void proxy().dropNextReply("EVALSHA"),
    // By order: the leader hands over what it has, so nothing is lost; Redis refuses it where a replica cannot catch up.
    failover: () =>
      cluster.nodes[Math.floor(random() * cluster.nodes.length)]!.cli("CLUSTER", "FAILOVER").catch(() => {}),
  };
  const names = Object.keys(kinds);
  const endsAtMs = performance.now() + ms;
  for (let i = 0; performance.now() < endsAtMs; i++) {
    // Each kind in turn first, so that a short soak has all of them.
    const name = i < names.length ? names[i]! : names[Math.floor(random() * names.length)]!;
    faults[name] = (faults[name] ?? 0) + 1;
    await kinds[name]!();
    await sleep(700 + random() * 1_500);
  }
  return faults;
}

async function startProxiedCluster(): Promise<
  { url: string; proxies: TcpFaultProxy[]; cluster: RedisCluster } & AsyncDisposable
> {
  const ports = await Promise.all(Array.from({ length: 6 }, () => freePort()));
  const proxies = await Promise.all(ports.map((upstreamPort) => startTcpFaultProxy({ upstreamPort })));
  const busPort = (n: number): number => ports[n]! + 10_000;
  const cluster = await startCluster({
    leaders: 3,
    replicasEach: 1,
    node: (n) => ({
      urgent: true,
      port: ports[n]!,
      args: [
        // The faults are the clients': a busy machine must not look like a lost node, whose replica would lack the last writes.
        ...["--cluster-node-timeout", "60000"],
        ...["--cluster-announce-ip", "127.0.0.1"],
        ...["--cluster-announce-port", String(proxies[n]!.port)],
        ...["--cluster-announce-bus-port", String(busPort(n))],
      ],
    }),
    meetAt: (_, n) => ({ port: proxies[n]!.port, busPort: busPort(n) }),
  });
  return {
    url: `redis+cluster://${proxies.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    proxies,
    cluster,
    async [Symbol.asyncDispose]() {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await cluster.stop();
    },
  };
}
