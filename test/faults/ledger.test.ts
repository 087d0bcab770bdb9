/**
 * A ledger beside the store: random checks, repeats, refunds, charges, reservations and resets, from two instances, on memory, on one Redis and
 * on a cluster whose slots move meanwhile. Steps of one id come one after the other, those of different ids at once. In the end every counter
 * must hold exactly what the ledger says, and no id may have been admitted twice.
 */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";
import { leaderOf, moveSlot, slotOfUser } from "./cluster-steps.js";

const LIMIT = 1_000_000;
const forms = [
  { algorithm: "token-bucket" },
  { algorithm: "gcra" },
  { algorithm: "fixed-window" },
  { algorithm: "sliding-counter" },
  { algorithm: "rolling-window", storage: "sorted-set" },
  { algorithm: "rolling-window", storage: "packed" },
] as const;
const users = ["u0", "u1", "u2", "u3"];
/** Each request meets two rules, whose counters may live in two slots. */
const rules: Rule[] = forms.flatMap((form, i): Rule[] => {
  const counted = { limit: LIMIT, window: "3650d", onStoreFailure: "deny", ...form } as const;
  const match = { form: String(i) };
  return [
    { id: `a${i}`, key: ["user"], match, ...counted } as Rule,
    { id: `b${i}`, key: ["form"], match, ...counted } as Rule,
  ];
});
const reserving: Rule[] = forms.map(
  (form, i) =>
    ({
      id: `r${i}`,
      key: ["payer"],
      match: { book: String(i) },
      limit: LIMIT,
      window: "3650d",
      cost: { attribute: "units" },
      estimate: { default: 7, ttl: "1h" },
      onStoreFailure: "deny",
      ...form,
    }) as Rule,
);

function randomOf(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Play {
  readonly limiters: readonly Limiter[];
  readonly random: () => number;
  readonly ids: number;
}

/** What counters must hold, by the rule and the value of its key. */
type Ledger = Map<string, number>;

async function play({ limiters, random, ids }: Play): Promise<Ledger> {
  const ledger: Ledger = new Map();
  const any = (): Limiter => limiters[Math.floor(random() * limiters.length)]!;
  const upTo = (n: number): number => Math.floor(random() * n);
  const add = (counter: string, units: number): void => {
    ledger.set(counter, (ledger.get(counter) ?? 0) + units);
  };
  const life = async (n: number): Promise<void> => {
    const [form, user, cost, id] = [String(upTo(forms.length)), users[upTo(users.length)]!, 1 + upTo(9), `id-${n}`];
    let stands = 0;
    const isCharge = random() < 0.2;
    for (let steps = 1 + upTo(5); steps > 0; steps--) {
      if (random() < 0.7) {
        const ask = () => {
          const limiter = any();
          return isCharge ? limiter.charge({ form, user }, { cost, id }) : limiter.check({ form, user }, { cost, id });
        };
        // Repeats at once, from both instances: one of them charges.
        const found = await Promise.all(random() < 0.3 ? [ask(), ask(), ask()] : [ask()]);
        expect(found.map(({ allowed, degraded }) => [allowed, degraded])).toEqual(found.map(() => [true, undefined]));
        stands = cost;
      } else {
        const given = await Promise.all(random() < 0.3 ? [any().refund(id), any().refund(id)] : [any().refund(id)]);
        // Of two at once, on two slots, each may give back a part.
        expect([id, given.includes(true)]).toEqual([id, stands > 0]);
        stands = 0;
      }
    }
    add(`a${form} ${user}`, stands);
    add(`b${form} ${form}`, stands);
  };
  const reservation = async (n: number): Promise<void> => {
    const [book, payer] = [String(upTo(forms.length)), users[upTo(users.length)]!];
    const { reservation: held } = await any().check({ book, payer }, { id: `hold-${n}` });
    const units = upTo(20);
    if (random() < 0.4) await any().extend(held!.id, { units: 7 + upTo(10) });
    const isCancelled = random() < 0.3;
    const end = () => (isCancelled ? any().cancel(held!.id) : any().settle(held!.id, { units }));
    const ends = await Promise.all([end(), end()]);
    const cost = isCancelled ? 0 : units;
    expect(ends.map(({ charged }) => charged[`r${book}`])).toEqual([cost, cost]);
    add(`r${book} ${payer}`, cost);
  };
  const lives = Array.from({ length: ids }, (_, n) => n);
  const workers = Array.from({ length: 12 }, async () => {
    for (let n = lives.pop(); n !== undefined; n = lives.pop()) await (n % 4 === 0 ? reservation(n) : life(n));
  });
  await Promise.all(workers);
  return ledger;
}

/** What the counters hold, in the words of the ledger. */
async function read(limiter: Limiter, ledger: Ledger): Promise<Ledger> {
  const held: Ledger = new Map();
  for (const counter of ledger.keys()) {
    const [rule, value] = counter.split(" ") as [string, string];
    const form = rule.slice(1);
    const attributes = rule.startsWith("r")
      ? { book: form, payer: value, units: 0 }
      : { form, user: rule.startsWith("a") ? value : "nobody" };
    const { checks } = await limiter.peek(attributes, { cost: 0 });
    held.set(counter, LIMIT - checks.find((check) => check.rule === rule)!.remaining);
  }
  return held;
}

async function judge(open: () => Limiter, { ids, seed }: { ids: number; seed: number }): Promise<void> {
  const limiters = [open(), open()];
  try {
    for (const limiter of limiters) await expect.poll(() => limiter.ready()).toBe(true);
    const ledger = await play({ limiters, random: randomOf(seed), ids });
    expect(Object.fromEntries(await read(limiters[0]!, ledger))).toEqual(Object.fromEntries(ledger));
  } finally {
    for (const limiter of limiters) await limiter.close();
  }
}

const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
const ids = Number(process.env.SLUICE_TEST_RUNS ?? 1_500);
const all = [...rules, ...reserving];

describe("a ledger of what was charged", () => {
  test("memory: the counters hold it", async () => {
    console.log(`ledger: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
    const limiter = createLimiter({ rules: all });
    const ledger = await play({ limiters: [limiter], random: randomOf(seed), ids });
    expect(Object.fromEntries(await read(limiter, ledger))).toEqual(Object.fromEntries(ledger));
    await limiter.close();
  });

  test.skipIf(whyMissing("redis"))("one Redis, two instances: the counters hold it", async () => {
    await using redis = await startRedis();
    const open = (): Limiter => createLimiter({ store: redisStore(redis.url, { deadlineMs: 60_000 }), rules: all });
    await judge(open, { ids, seed });
  });

  test.skipIf(whyMissing("redis"))("a cluster whose slots move, two instances: the counters hold it", async () => {
    await using cluster = await startCluster();
    const open = (): Limiter => createLimiter({ store: redisStore(cluster.url, { deadlineMs: 60_000 }), rules: all });
    let isOver = false;
    let moves = 0;
    const moving = (async () => {
      for (let n = 0; !isOver; n = (n + 1) % users.length) {
        const { leader } = await leaderOf(cluster, users[n]!);
        const to = cluster.leaders.find((one) => one !== leader)!;
        await moveSlot(cluster, { slot: slotOfUser(users[n]!), from: leader, to });
        moves++;
      }
    })();
    try {
      await judge(open, { ids, seed });
    } finally {
      isOver = true;
      await moving;
    }
    console.log(`ledger: ${moves} slots moved`);
    expect(moves).toBeGreaterThan(2);
  });
});
