import { expect, test } from "vitest";
import type { Rule } from "../rules/rule.js";
import { compileRuleBook } from "../rules/rule-book.js";
import { MemoryStore } from "../store/memory/memory-store.js";
import type { SharedLimits, SharedLimitsRequest, Store } from "../store/store.js";
import { AdaptiveLimits, type LimitMove } from "./adaptive-limits.js";

const tuned: Rule = {
  id: "tuned",
  key: ["user"],
  algorithm: "token-bucket",
  limit: 100,
  window: "1s",
  adapt: { signal: "reported", target: 0.8, min: 20, max: 200 },
  overrides: [{ match: { user: "acme" }, limit: 1_000 }],
};

/** Limits as Redis stores them, for several instances; `isAway`: it does not answer. */
class Shared {
  isAway = false;
  leader: string | undefined;
  readonly limits = new Map<string, number>();

  store(): Store {
    const shareLimits = async ({ instance, limits }: SharedLimitsRequest): Promise<SharedLimits> => {
      if (this.isAway) throw new Error("away");
      const isNew = this.leader === undefined;
      this.leader ??= instance;
      const leads = this.leader === instance;
      for (const { rule, limit } of limits) {
        if (leads && (!isNew || !this.limits.has(rule))) this.limits.set(rule, limit);
      }
      return { leads, limits: limits.map(({ rule }) => this.limits.get(rule)) };
    };
    return Object.assign(new MemoryStore(), { shareLimits });
  }
}

function instance(name: string, store: Store, rules: readonly Rule[] = [tuned]) {
  const book = compileRuleBook(rules, 1);
  const moves: LimitMove[] = [];
  const world = { nowMs: 0, utilisation: undefined as number | undefined };
  const limits = new AdaptiveLimits({
    store,
    instance: name,
    now: () => world.nowMs,
    utilisationOf: () => world.utilisation,
    onMove: (move) => moves.push(move),
  });
  limits.follow(book);
  limits.close();
  const steps = async (seconds: number, utilisation: number | undefined): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      world.nowMs += 1_000;
      world.utilisation = utilisation;
      await limits.step();
    }
  };
  const limitOf = (user: string): number => book.checks({ user }, 1)[0]!.plan.policy.limit;
  return { book, limits, moves, steps, limitOf };
}

test("the limit in force applies to checks, and overrides move in proportion", async () => {
  const { steps, limitOf, limits, moves } = instance("a", new MemoryStore());
  await steps(1, 1);
  expect([limitOf("ann"), limitOf("acme")]).toEqual([70, 700]);
  expect(limits.stats()).toMatchObject([
    { rule: "tuned", limit: 70, configured: 100, lowered: 1, raised: 0, leads: true },
  ]);
  await steps(60, 1);
  expect([limitOf("ann"), limitOf("acme")]).toEqual([20, 200]);
  await steps(60, 0.1);
  expect([limitOf("ann"), limitOf("acme")]).toEqual([200, 2_000]);
  expect(moves[0]).toEqual({ rule: "tuned", from: 100, to: 70, utilisation: 1, leads: true, alone: false });
});

test("one instance moves the limit, the others follow, whatever they measure", async () => {
  const shared = new Shared();
  const [a, b] = [instance("a", shared.store()), instance("b", shared.store())];
  for (let second = 0; second < 5; second++) {
    await a.steps(1, 1);
    await b.steps(1, 0.1);
  }
  expect(a.limitOf("ann")).toBeLessThan(50);
  expect(b.limitOf("ann")).toBe(a.limitOf("ann"));
  expect([a.moves.every(({ leads }) => leads), b.moves.every(({ leads }) => !leads)]).toEqual([true, true]);
});

test("a new leader continues from the limit that it finds", async () => {
  const shared = new Shared();
  const a = instance("a", shared.store());
  await a.steps(4, 1);
  const found = a.limitOf("ann");
  shared.leader = undefined;
  const b = instance("b", shared.store());
  await b.steps(1, 0.8);
  expect(b.limitOf("ann")).toBe(found);
});

test("without the store the last limit holds, then drifts back to the rule's own; with it, its limit applies again", async () => {
  const shared = new Shared();
  const a = instance("a", shared.store());
  await a.steps(4, 1);
  const last = a.limitOf("ann");
  shared.isAway = true;
  await a.steps(29, 1);
  expect(a.limitOf("ann")).toBe(last);
  await a.steps(60, 1);
  expect(a.limitOf("ann")).toBe(100);
  shared.isAway = false;
  shared.limits.set("tuned", 42);
  shared.leader = "somebody else";
  await a.steps(1, 0.8);
  expect(a.limitOf("ann")).toBe(42);
});

test("a limit out of range, possibly written by another version, is brought into range", async () => {
  const shared = new Shared();
  shared.leader = "somebody else";
  shared.limits.set("tuned", 1e9);
  const a = instance("a", shared.store());
  await a.steps(1, 0.8);
  expect(a.limitOf("ann")).toBe(200);
});

test("a lowered limit never answers with a remaining below 0, and keeps what was counted", async () => {
  const store = new MemoryStore();
  const { book, steps } = instance("a", store, [{ ...tuned, algorithm: "rolling-window", window: "1h" } as Rule]);
  const decide = (cost: number) =>
    store.decide({
      checks: book.checks({ user: "ann" }, cost),
      charge: true,
      entryId: "e",
      id: undefined,
      fingerprint: "",
      rulesVersion: 1,
    }).verdicts[0]!;
  expect(decide(90).allowed).toBe(true);
  await steps(3, 1);
  expect(decide(1)).toMatchObject({ allowed: false, reason: "limit" });
});

test("a check keeps the numbers that it was made with, however the limit moves", async () => {
  const { book, steps, limitOf } = instance("a", new MemoryStore());
  const [check] = book.checks({ user: "ann" }, 1);
  const { policy } = check!.plan;
  await steps(2, 1);
  expect(limitOf("ann")).toBe(49);
  expect(check!.plan.policy).toBe(policy);
});

test("the fast path of a book with one rule follows the limit, and its earlier decisions keep their numbers", async () => {
  const { overrides: _, ...sole } = tuned as Rule & { overrides: unknown };
  const { book, steps } = instance("a", new MemoryStore(), [sole]);
  const before = book.sole!.requestOf({ user: "ann" })!;
  await steps(1, 1);
  expect(book.sole!.requestOf({ user: "ann" })!.check.plan.policy.limit).toBe(70);
  expect(before.check.plan.policy.limit).toBe(100);
});
