/**
 * A ledger beside the store: random checks, repeats, refunds, charges, reservations, leases, resets and units fetched ahead, from two instances, on memory, on one Redis and
 * on a cluster whose slots move meanwhile. Steps of one id come one after the other, those of different ids at once. In the end every counter
 * must hold exactly what the ledger says, and no id may have been admitted twice.
 */
import { type Attributes, createLimiter, type Decision, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { randomOf } from "../harness/random.js";
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

/** Units are fetched ahead, and live longer than the test: none may end unsettled because the machine was busy. */
const prefetching: Rule[] = forms
  .map(
    (form, i) =>
      ({
        id: `p${i}`,
        key: ["lane"],
        match: { road: String(i) },
        limit: LIMIT,
        window: "3650d",
        prefetch: "60s",
        onStoreFailure: "deny",
        ...form,
      }) as Rule,
  )
  .filter(({ algorithm }) => algorithm !== "sliding-counter");
const resetting: Rule[] = forms.map(
  (form, i) =>
    ({
      id: `t${i}`,
      key: ["tab"],
      match: { sheet: String(i) },
      limit: LIMIT,
      window: "3650d",
      onStoreFailure: "deny",
      ...form,
    }) as Rule,
);
const leasing: Rule[] = [
  { id: "l0", key: ["guest"], algorithm: "concurrency", limit: LIMIT, ttl: "1h", onStoreFailure: "deny" },
];

interface Play {
  readonly limiters: readonly Limiter[];
  readonly random: () => number;
  readonly ids: number;
}

interface Charge {
  readonly cost: number;
  readonly decision: Decision;
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
  /** A counter of its own that is reset while units of it are held: what was held before then is neither given back nor counted. */
  const resetReservation = async (n: number): Promise<void> => {
    const [book, payer] = [String(upTo(forms.length)), `payer-${n}`];
    const { reservation: held } = await any().check({ book, payer });
    const before = held!.held[`r${book}`]!;
    await any().reset(`r${book}`, { book, payer });
    const more = upTo(5);
    if (more > 0) await any().check({ book, payer, units: more });
    if (random() < 0.4) await any().extend(held!.id, { units: before + upTo(10) });
    const units = upTo(30);
    const ends = await Promise.all([any().settle(held!.id, { units }), any().settle(held!.id, { units })]);
    expect(ends.map(({ charged }) => charged[`r${book}`])).toEqual([units, units]);
    add(`r${book} ${payer}`, more + Math.max(0, units - before));
  };
  /** Places: taken, renewed, released twice at once. Some are kept. */
  const visit = async (n: number): Promise<void> => {
    const guest = users[upTo(users.length)]!;
    const [cost, id] = [1 + upTo(3), random() < 0.5 ? { id: `visit-${n}` } : {}];
    const { allowed, lease } = await any().check({ guest }, { cost, ...id });
    expect(allowed).toBe(true);
    if (random() < 0.3) expect(await any().renew(lease!.id)).toBe(3_600_000);
    const isKept = random() < 0.3;
    if (!isKept) {
      const released = await Promise.all([any().release(lease!.id), any().release(lease!.id)]);
      expect(released.sort()).toEqual([false, true]);
      expect(await any().renew(lease!.id)).toBe(0);
    }
    add(`l0 ${guest}`, isKept ? cost : 0);
  };
  /** Places of a counter of its own that is reset: the leases of before are gone, and take nothing from those of after. */
  const resetVisit = async (n: number): Promise<void> => {
    const guest = `guest-${n}`;
    const { lease: before } = await any().check({ guest }, { cost: 1 + upTo(3) });
    await any().reset("l0", { guest });
    const cost = 1 + upTo(3);
    const { lease: after } = await any().check({ guest }, { cost });
    expect([await any().renew(before!.id), await any().release(before!.id)]).toEqual([0, false]);
    const isReleased = random() < 0.5;
    if (isReleased) expect(await any().release(after!.id)).toBe(true);
    add(`l0 ${guest}`, isReleased ? 0 : cost);
  };
  /** A counter of its own that is reset: only what was charged since then stands, and can be refunded. */
  const tab = async (n: number): Promise<void> => {
    const [sheet, name] = [String(upTo(forms.length)), `tab-${n}`];
    let before: Charge[] = [];
    let since: Charge[] = [];
    for (let steps = 2 + upTo(8); steps > 0; steps--) {
      const dice = random();
      if (dice < 0.5) {
        const id = random() < 0.5 ? { id: `tab-${n}-${steps}` } : {};
        const cost = 1 + upTo(9);
        since.push({ cost, decision: await any().check({ sheet, tab: name }, { cost, ...id }) });
      } else if (dice < 0.7) {
        await any().reset(`t${sheet}`, { sheet, tab: name });
        before = [...before, ...since];
        since = [];
      } else if (dice < 0.85 && since.length > 0) {
        const [charge] = since.splice(upTo(since.length), 1);
        // A charge in the millisecond of a reset cannot be given back in most forms.
        if (!(await any().refund(charge!.decision))) since.push(charge!);
      } else if (before.length > 0) await any().refund(before.splice(upTo(before.length), 1)[0]!.decision);
    }
    add(
      `t${sheet} ${name}`,
      since.reduce((sum, { cost }) => sum + cost, 0),
    );
  };
  /** A hot key: most is decided from units in hand, some of it refunded. */
  const drive = async (): Promise<void> => {
    const rule = prefetching[upTo(prefetching.length)]!.id;
    const [road, lane, limiter] = [rule.slice(1), users[upTo(users.length)]!, any()];
    for (let turns = 1 + upTo(4); turns > 0; turns--) {
      const made = await Promise.all(Array.from({ length: upTo(40) }, () => limiter.check({ road, lane })));
      expect(made.filter(({ allowed, degraded }) => !allowed || degraded !== undefined)).toEqual([]);
      add(`${rule} ${lane}`, made.length);
      for (const decision of made) if (random() < 0.1 && (await limiter.refund(decision))) add(`${rule} ${lane}`, -1);
    }
  };
  const kinds = [reservation, life, life, life, visit, tab, drive, resetReservation, resetVisit];
  const lives = Array.from({ length: ids }, (_, n) => n);
  const workers = Array.from({ length: 12 }, async () => {
    for (let n = lives.pop(); n !== undefined; n = lives.pop()) await kinds[n % kinds.length]!(n);
  });
  await Promise.all(workers);
  return ledger;
}

function attributesOf(kind: string, form: string, value: string): Attributes {
  if (kind === "r") return { book: form, payer: value, units: 0 };
  if (kind === "p") return { road: form, lane: value };
  if (kind === "t") return { sheet: form, tab: value };
  if (kind === "l") return { guest: value };
  return { form, user: kind === "a" ? value : "nobody" };
}

/** What the counters hold, in the words of the ledger. */
async function read(limiter: Limiter, ledger: Ledger): Promise<Ledger> {
  const held: Ledger = new Map();
  for (const counter of ledger.keys()) {
    const [rule, value] = counter.split(" ") as [string, string];
    const form = rule.slice(1);
    const attributes = attributesOf(rule[0]!, form, value);
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
    expect(limiters.some((limiter) => limiter.prefetchStats()!.decided > 0)).toBe(true);
    // The last settlement.
    for (const limiter of limiters.splice(0)) await limiter.close();
    const reader = open();
    limiters.push(reader);
    await expect.poll(() => reader.ready()).toBe(true);
    expect(Object.fromEntries(await read(reader, ledger))).toEqual(Object.fromEntries(ledger));
  } finally {
    for (const limiter of limiters) await limiter.close();
  }
}

const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
const ids = Number(process.env.SLUICE_TEST_RUNS ?? 1_500);
const all = [...rules, ...reserving, ...prefetching, ...resetting, ...leasing];

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
