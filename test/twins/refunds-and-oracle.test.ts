/**
 * Refunds against a world in which what was given back never happened. The oracle keeps every charge and counts anew from the others
 * alone. A refund must leave no more room than that world has, ever, and no less than there was before it.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { chargedBy } from "../../packages/sluice/src/algorithms/charged.js";
import type { Policy } from "../../packages/sluice/src/algorithms/policy.js";
import type { Check } from "../../packages/sluice/src/check.js";
import type { Rule } from "../../packages/sluice/src/index.js";
import { asCharges } from "../../packages/sluice/src/limiter/charges.js";
import { compileRuleBook } from "../../packages/sluice/src/rules/rule-book.js";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import type { StoreReply } from "../../packages/sluice/src/store/store.js";

interface Happened {
  readonly atMs: number;
  /** Below 0: given back without naming a charge. */
  readonly units: number;
}

interface Past extends Happened {
  readonly check: Check;
  readonly reply: StoreReply;
  readonly entryId: string;
  /** By its id. */
  readonly id: string | undefined;
}

/** What a counter has room for and when it is empty, had only these things happened. */
function worldOf(policy: Policy, happened: readonly Happened[], nowMs: number): { room: number; resetAfterMs: number } {
  const sum = (fromMs: number, toMs = nowMs): number =>
    happened.reduce((units, { atMs, units: n }) => (atMs >= fromMs && atMs <= toMs ? units + n : units), 0);
  switch (policy.stored) {
    case "token-bucket":
    case "gcra": {
      const { amount, scaleMs, capacity } = policy;
      let missing = 0;
      let lastMs = 0;
      for (const { atMs, units } of [...happened, { atMs: nowMs, units: 0 }]) {
        missing = Math.max(0, Math.max(0, missing - (atMs - lastMs) * amount) + units * scaleMs);
        lastMs = atMs;
      }
      return {
        room: Math.floor((capacity * scaleMs - missing) / scaleMs),
        resetAfterMs: Math.ceil(missing / amount),
      };
    }
    case "fixed-window":
      return { room: policy.limit - sum(nowMs - (nowMs % policy.windowMs)), resetAfterMs: 0 };
    case "sliding-counter": {
      const { limit, windowMs } = policy;
      const startMs = nowMs - (nowMs % windowMs);
      const weight = sum(startMs) * windowMs + sum(startMs - windowMs, startMs - 1) * (windowMs - (nowMs - startMs));
      return { room: Math.floor((limit * windowMs - weight) / windowMs), resetAfterMs: 0 };
    }
    case "rolling-window":
    case "rolling-window-packed":
      return { room: policy.limit - sum(nowMs - policy.windowMs + 1), resetAfterMs: 0 };
    default:
      throw new Error(`no world for ${policy.stored}`);
  }
}

const isBucket = ({ stored }: Policy): boolean => stored === "token-bucket" || stored === "gcra";

const rule = fc
  .record({
    algorithm: fc.constantFrom("token-bucket", "gcra", "fixed-window", "sliding-counter", "rolling-window"),
    limit: fc.integer({ min: 1, max: 60 }),
    windowMs: fc.integer({ min: 1, max: 400 }),
  })
  .map(({ algorithm, limit, windowMs }): Rule => {
    return { id: "r", key: [], algorithm, limit, window: `${windowMs}ms` } as Rule;
  });
const steps = fc.array(
  fc.record({
    waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 13, max: 250 })),
    kind: fc.constantFrom("check", "check", "check", "charge", "refund", "refund", "nameless"),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 40 })),
    /** Which of the charges that stand. */
    which: fc.nat({ max: 1_000 }),
    byId: fc.boolean(),
  }),
  { minLength: 2, maxLength: 50, size: "max" },
);
const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
// Not a multiple of any window: alignment to the epoch is part of what is tested.
const START_MS = 1_795_000_000_123;

class Run {
  nowMs = START_MS;
  readonly #book;
  readonly #store = new MemoryStore({ clock: { now: () => this.nowMs } });
  /** Everything that happened and was not refunded, in order. */
  #stands: Happened[] = [];
  #charges: Past[] = [];
  #names = 0;

  constructor(rule: Rule) {
    this.#book = compileRuleBook([rule], 1);
  }

  get policy(): Policy {
    return this.#book.checks({}, 1)[0]!.plan.policy;
  }

  get standing(): number {
    return this.#charges.length;
  }

  take(cost: number, { isCharge = false, byId = false } = {}): void {
    const made = this.#book.checks({}, cost);
    // What a rolling window owes beyond its limit is paid at an even rate, which no world of entries has.
    const [check] = (isCharge && !("minIntervalMs" in this.policy) ? asCharges(made) : made) as [Check];
    const entryId = `e${this.#names++}`;
    const id = byId ? entryId : undefined;
    const request = { checks: [check], charge: true, entryId, id, fingerprint: "", rulesVersion: 1 };
    const reply = this.#store.decide(request);
    if (!reply.verdicts[0]!.charged) return;
    const past: Past = { atMs: this.nowMs, units: check.cost, check, reply, entryId, id };
    this.#stands.push(past);
    this.#charges.push(past);
  }

  giveBack(cost: number): void {
    this.#store.giveBack(this.#book.checks({}, cost));
    this.#stands.push({ atMs: this.nowMs, units: -cost });
  }

  refund(which: number): void {
    const [past] = this.#charges.splice(which % this.#charges.length, 1) as [Past];
    this.#stands = this.#stands.filter((other) => other !== past);
    const reply = past.id === undefined ? past.reply : this.#store.recall(past.id)!;
    const before = this.look();
    this.#store.refund({ charges: [chargedBy(reply, 0, past.check, past.entryId)], id: past.id });
    expect(this.look().room).toBeGreaterThanOrEqual(before.room);
  }

  look(): { room: number; resetAfterMs: number } {
    const request = { charge: false, entryId: "", id: undefined, fingerprint: "", rulesVersion: 1 };
    const [found] = this.#store.decide({ ...request, checks: this.#book.checks({}, 0) }).verdicts;
    return { room: found!.remaining, resetAfterMs: found!.resetAfterMs };
  }

  world(): { room: number; resetAfterMs: number } {
    return worldOf(this.policy, this.#stands, this.nowMs);
  }
}

test("no refund leaves more room than there would be without its charge, nor less than before it", () => {
  console.log(`refunds-and-oracle: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  let refunds = 0;
  fc.assert(
    fc.property(rule, steps, (chosen, schedule) => {
      const run = new Run(chosen);
      for (const { waitMs, kind, cost, which, byId } of schedule) {
        run.nowMs += waitMs;
        if (kind === "check" || kind === "charge") run.take(cost, { isCharge: kind === "charge", byId });
        // Windows give the newest back, whoever charged them: then a refund by name has nothing of its own left.
        else if (kind === "nameless" && isBucket(run.policy)) run.giveBack(cost);
        else if (kind === "refund" && run.standing > 0) {
          run.refund(which);
          refunds++;
        }
        const [here, world] = [run.look(), run.world()];
        expect(here.room).toBeLessThanOrEqual(world.room);
        if (isBucket(run.policy)) expect(here.resetAfterMs).toBeGreaterThanOrEqual(world.resetAfterMs);
      }
    }),
    { seed, numRuns: 2_000 },
  );
  expect(refunds).toBeGreaterThan(3_000);
});

test("refunds in the millisecond of their charges leave exactly that world, in whatever order they come", () => {
  fc.assert(
    fc.property(rule, steps, (chosen, schedule) => {
      const run = new Run(chosen);
      for (const { waitMs, kind, cost, which, byId } of schedule) {
        // Charges that stay, at times of their own; then a burst of which some goes back at once.
        run.nowMs += waitMs;
        run.take(cost);
        const old = run.standing;
        for (let i = 0; i < which % 5; i++) run.take(1 + ((which + i) % 7), { isCharge: kind === "charge", byId });
        for (let i = which; run.standing > old; i = i * 31 + 7) run.refund(old + (i % (run.standing - old)));
        expect(run.look().room).toBe(run.world().room);
      }
    }),
    { seed, numRuns: 400 },
  );
});

test.each(["token-bucket", "gcra"] as const)(
  "%s: what refill has paid back is not given back out of others' charges",
  (algorithm) => {
    const run = new Run({ id: "r", key: [], algorithm, limit: 100, window: "1m" });
    run.take(50);
    run.nowMs += 29_000;
    run.take(30);
    run.refund(0);
    // 48 and a third of the 50 were refilled: one and two thirds are given back.
    expect(run.look().room).toBe(70);
  },
);
