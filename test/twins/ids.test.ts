/**
 * Request ids against a naive oracle: random schedules of checks, repeats, other requests with the same id, refunds and resets, over two
 * instances, in memory, on one Redis and on a Cluster whose rules lie in different slots; before and after an edit of the rules, and
 * beside other limiters on the same store. The oracle keeps every id and every charge in plain maps: an id is charged at most once, and
 * what stands on a counter is what was admitted and not refunded.
 */
import fc from "fast-check";
import { createLimiter, type Decision, type Limiter, memoryStore, type Rule, SluiceError, type Store } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, expect, test as vitest } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisCluster, startCluster } from "../harness/redis-cluster.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const limits = { user: 3, path: 4, login: 5 } as const;
type Name = keyof typeof limits;
const names = ["user", "path", "login"] as const;
/** The attribute that a rule counts by. */
const keyOf = { user: "user", path: "path", login: "user" } as const;

interface Book {
  readonly version: number;
  readonly rules: readonly Name[];
}

/** The rules of most requests; those of other limiters, one of which shares a rule; and the first after an edit. */
const books: readonly Book[] = [
  { version: 1, rules: ["user", "path"] },
  { version: 1, rules: ["login"] },
  { version: 1, rules: ["user", "login"] },
  { version: 2, rules: ["user", "path", "login"] },
];
const EDITED = 3;

type Command =
  | { kind: "check"; id: number; book: number; user: number; path: number; cost: number; by: number; twice: boolean }
  | { kind: "refund-id"; id: number; by: number }
  | { kind: "refund-decision"; nth: number; by: number }
  | { kind: "reset"; user: number };

const small = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max });
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("check" as const),
      id: small(7),
      book: fc.oneof(
        { weight: 9, arbitrary: fc.constant(0) },
        { weight: 3, arbitrary: fc.constant(EDITED) },
        { weight: 2, arbitrary: small(books.length - 1) },
      ),
      // Mostly the same request, so that ids are repeated and not only misused.
      user: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constant(1) }),
      path: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constant(1) }),
      cost: fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constant(2) }),
      by: small(1),
      twice: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("refund-id" as const), id: small(7), by: small(1) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("refund-decision" as const), nth: small(40), by: small(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reset" as const), user: small(1) }) },
);

type Keys = Record<"user" | "path", string>;

interface Charge {
  readonly book: Book;
  readonly keys: Keys;
  readonly cost: number;
  readonly allowed: boolean;
  refunded: boolean;
  /** A counter was forgotten since: what a refund then gives back is another test's matter. */
  forgotten: boolean;
}

/** What must be, by plain bookkeeping. */
class Oracle {
  readonly #used = new Map<string, number>();
  readonly ids = new Map<number, { sent: string; charge: Charge }>();

  used(name: Name, keys: Keys): number {
    return this.#used.get(`${name} ${keys[keyOf[name]]}`) ?? 0;
  }

  #use(name: Name, keys: Keys, cost: number): void {
    this.#used.set(`${name} ${keys[keyOf[name]]}`, this.used(name, keys) + cost);
  }

  check(id: number, keys: Keys, { cost, book }: { cost: number; book: Book }): Charge | "invalid-request" {
    const sent = `${keys.user} ${keys.path} ${cost}`;
    const known = this.ids.get(id);
    if (known !== undefined)
      return known.sent === sent && mayRepeat(book, known.charge.book) ? known.charge : "invalid-request";
    const allowed = book.rules.every((name) => this.used(name, keys) + cost <= limits[name]);
    if (allowed) for (const name of book.rules) this.#use(name, keys, cost);
    const charge = { book, keys, cost, allowed, refunded: false, forgotten: false };
    this.ids.set(id, { sent, charge });
    return charge;
  }

  refund(id: number, charge: Charge | undefined): boolean {
    if (charge === undefined || this.ids.get(id)?.charge !== charge || !charge.allowed) return false;
    for (const name of charge.book.rules) this.#use(name, charge.keys, -charge.cost);
    this.ids.delete(id);
    return true;
  }

  reset(user: string): void {
    this.#used.delete(`user ${user}`);
    for (const { charge } of this.ids.values()) if (charge.keys.user === user) charge.forgotten = true;
  }
}

/** Of an edit, a rule is left. */
function mayRepeat(later: Book, first: Book): boolean {
  if (later.version === first.version) return later === first;
  return later.rules.some((name) => first.rules.includes(name));
}

let runs = 0;
const counted = { repeated: 0, mistaken: 0, refunded: 0, refused: 0, byOthers: 0, edited: 0 };

/** `limitersOf[book]`: of each instance. */
async function replay(limitersOf: readonly (readonly Limiter[])[], commands: readonly Command[]): Promise<void> {
  const run = `run-${runs++}-`;
  const oracle = new Oracle();
  const past: { id: number; decision: Decision; charge: Charge }[] = [];
  const key = (name: keyof Keys, n: number): string => `${run}${name}-${n}`;
  for (const [n, step] of commands.entries()) {
    const at = `${n}: ${JSON.stringify(step)}`;
    if (step.kind === "check") {
      const keys = { user: key("user", step.user), path: key("path", step.path) };
      const book = books[step.book]!;
      const limiters = limitersOf[step.book]!;
      const first = oracle.ids.get(step.id);
      const expected = oracle.check(step.id, keys, { cost: step.cost, book });
      if (first !== undefined && first.charge.book !== book)
        counted[expected === "invalid-request" ? "byOthers" : "edited"]++;
      const askers = step.twice ? limiters : [limiters[step.by % limiters.length]!];
      const answers = await Promise.all(
        askers.map((limiter) => limiter.check(keys, { cost: step.cost, id: `${run}${step.id}` }).catch(codeOf)),
      );
      for (const answer of answers) {
        expect(typeof answer === "string" ? answer : answer.allowed, at).toBe(
          expected === "invalid-request" ? expected : expected.allowed,
        );
        if (expected === "invalid-request") counted.mistaken++;
        else if (!expected.allowed) counted.refused++;
        else if (first !== undefined) counted.repeated++;
        if (typeof answer !== "string" && expected !== "invalid-request") {
          expect(answer.degraded, at).toBeUndefined();
          past.push({ id: step.id, decision: answer, charge: expected });
        }
      }
    } else if (step.kind === "reset") {
      await limitersOf[0]![0]!.reset("per-user", { user: key("user", step.user) });
      oracle.reset(key("user", step.user));
    } else {
      const chosen = step.kind === "refund-decision" ? past[step.nth % Math.max(1, past.length)] : undefined;
      if (step.kind === "refund-decision" && chosen === undefined) continue;
      const id = step.kind === "refund-id" ? step.id : chosen!.id;
      const charge = step.kind === "refund-id" ? oracle.ids.get(id)?.charge : chosen!.charge;
      if (charge?.forgotten) continue;
      const target = step.kind === "refund-id" ? `${run}${id}` : chosen!.decision;
      const expected = oracle.refund(id, charge);
      if (expected) counted.refunded++;
      // By any limiter on the store.
      const limiters = limitersOf[step.by % books.length]!;
      expect(await limiters[step.by % limiters.length]!.refund(target), at).toBe(expected);
    }
  }
  for (const user of [0, 1]) {
    for (const path of [0, 1]) {
      const keys = { user: key("user", user), path: key("path", path) };
      const { checks } = await limitersOf[EDITED]!.at(-1)!.peek(keys, { cost: 0 });
      expect(checks.map(({ remaining }) => remaining)).toEqual(
        names.map((name) => limits[name] - oracle.used(name, keys)),
      );
    }
  }
}

/**
 * A hostile client: everything at once, over all instances. What happens in which order is not known, so what must hold is judged
 * afterwards: what stands on the counters is what can still be refunded, and no more was given back than charged.
 */
async function attacked(limitersOf: readonly (readonly Limiter[])[], rounds: number): Promise<void> {
  const limiters = limitersOf[0]!;
  const run = `attack-${runs++}-`;
  const keys = { user: `${run}user`, path: `${run}path` };
  const other = { user: `${run}other`, path: `${run}path` };
  // Whoever gave back more than was charged would take it from this one.
  expect((await limiters[0]!.check(keys)).allowed).toBe(true);
  const ids = Array.from({ length: 6 }, (_, i) => `${run}${i}`);
  const at = <T>(list: readonly T[], n: number): T => list[n % list.length]!;
  let seed = 1;
  const chance = (): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed;
  };
  for (let round = 0; round < rounds; round++) {
    await Promise.all(
      Array.from({ length: 24 }, async () => {
        const limiter = at(limiters, chance());
        const id = at(ids, chance());
        const kind = chance() % 13;
        if (kind < 5) await limiter.check(keys, { id }).catch(codeOf);
        else if (kind < 6) await limiter.check(other, { id }).catch(codeOf);
        else if (kind < 7) await limiter.check(keys, { id, cost: 2 }).catch(codeOf);
        else if (kind < 9) await limiter.refund(id);
        // Other limiters, and an edit.
        else if (kind < 12)
          await at(limitersOf[kind - 8]!, chance())
            .check(keys, { id })
            .catch(codeOf);
        else {
          const made = await limiter.check(keys, { id }).catch(codeOf);
          if (typeof made !== "string") await limiter.refund(made);
        }
      }),
    );
  }
  const used = async (): Promise<number[]> => {
    const [edited] = limitersOf[EDITED]!;
    const { checks } = await edited!.peek(keys, { cost: 0 });
    const elsewhere = (await edited!.peek(other, { cost: 0 })).checks;
    const [mine, path, login] = checks.map(({ rule, remaining }) => limits[rule.slice(4) as Name] - remaining);
    return [mine! + (limits.user - elsewhere[0]!.remaining), path!, login!];
  };
  for (const id of ids) {
    // Twice: a refund that met a request under way may have given back a part of it.
    for (let i = 0; i < 2; i++) await at(limiters, chance()).refund(id);
  }
  expect(await used()).toEqual([1, 1, 0]);
  for (const limiter of limitersOf.flat())
    expect(limiter.storeStats()?.undos ?? { pending: 0, lost: 0 }).toEqual({ pending: 0, lost: 0 });
}

function codeOf(error: unknown): string {
  if (error instanceof SluiceError) return error.code;
  throw error;
}

const algorithms = [
  { algorithm: "fixed-window" },
  { algorithm: "token-bucket" },
  { algorithm: "rolling-window", storage: "sorted-set" },
  { algorithm: "rolling-window", storage: "packed" },
] as const;

function rulesOf({ rules }: Book, numbers: (typeof algorithms)[number]): Rule[] {
  const ruleOf = (name: Name): Rule => ({
    id: `per-${name}`,
    key: [keyOf[name]],
    ...numbers,
    limit: limits[name],
    window: "365d",
  });
  return rules.map(ruleOf);
}

/** `stores`: one an instance. */
async function tried(stores: () => readonly Store[]): Promise<void> {
  const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`ids: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  for (const numbers of algorithms) {
    const instances = stores();
    const limitersOf = books.map((book) =>
      instances.map((store) => createLimiter({ store, rules: rulesOf(book, numbers), rulesVersion: book.version })),
    );
    for (const limiter of limitersOf[0]!) expect(await limiter.ready()).toBe(true);
    const schedule = fc.array(command, { minLength: 20, maxLength: 60, size: "max" });
    await fc.assert(
      fc.asyncProperty(schedule, (commands) => replay(limitersOf, commands)),
      { seed, numRuns: 25 },
    );
    for (let i = 0; i < 5; i++) await attacked(limitersOf, 10);
    await Promise.all(limitersOf.flat().map((limiter) => limiter.close()));
  }
  console.log(`ids: ${JSON.stringify(counted)}`);
  for (const count of Object.values(counted)) expect(count).toBeGreaterThan(8);
  for (const name of Object.keys(counted) as (keyof typeof counted)[]) counted[name] = 0;
}

const test = vitest.skipIf(whyMissing("redis"));
let redis: RedisServer | undefined;
let cluster: RedisCluster | undefined;
/** A stall of the machine must not look like an outage. */
const options = { deadlineMs: 60_000 };

afterAll(async () => {
  await redis?.stop();
  await cluster?.stop();
});

vitest("in memory each id is charged once, for what it was sent for, and a refund frees it", async () => {
  await tried(() => [memoryStore()]);
});

test("on one Redis, over two instances, each id is charged once, for what it was sent for, and a refund frees it", async () => {
  redis = await startRedis();
  const { url } = redis;
  await tried(() => [0, 1].map(() => redisStore(url, options)));
}, 600_000);

test("on a Cluster, over two instances and several slots, each id is charged once, for what it was sent for, and a refund frees it", async () => {
  cluster = await startCluster();
  const { url } = cluster;
  await tried(() => [0, 1].map(() => redisStore(url, options)));
}, 600_000);
