/**
 * Random schedules in which a rule is edited between a charge and its refund: its rate goes up and down, its limit, window, burst or refill
 * changes, and it is edited back. In: a store. Each step is judged by the oracle of edited-world.ts.
 */
import assert from "node:assert";
import fc from "fast-check";
import { chargedBy } from "../../packages/sluice/src/algorithms/charged.js";
import type { Policy } from "../../packages/sluice/src/algorithms/policy.js";
import type { Check } from "../../packages/sluice/src/check.js";
import type { Rule } from "../../packages/sluice/src/index.js";
import { asCharges } from "../../packages/sluice/src/limiter/charges.js";
import { compileRuleBook } from "../../packages/sluice/src/rules/rule-book.js";
import type { Store, StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { type Happened, isBucket, worldOf } from "./edited-world.js";

export const FORMS = [
  { algorithm: "token-bucket" },
  { algorithm: "gcra" },
  { algorithm: "fixed-window" },
  { algorithm: "sliding-counter" },
  { algorithm: "rolling-window", storage: "sorted-set" },
  { algorithm: "rolling-window", storage: "packed" },
] as const;
export type Form = (typeof FORMS)[number];

/** One state of a rule. Prime windows make the limit itself the numerator of the rate: an edit then keeps the unit of a bucket. */
function numbers(longestMs: number) {
  return fc.record({
    limit: fc.integer({ min: 1, max: 60 }),
    windowMs: fc.oneof(
      fc.constantFrom(...[7, 29, 101, 251].filter((ms) => ms <= longestMs)),
      fc.integer({ min: 1, max: longestMs }),
    ),
    burst: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
  });
}
type Numbers = ReturnType<typeof numbers> extends fc.Arbitrary<infer N> ? N : never;

/** The states that edits choose from: the fewer, the more often a rule is edited back. */
export function editions(longestMs: number): fc.Arbitrary<Numbers[]> {
  return fc.oneof(
    fc.array(numbers(longestMs), { minLength: 2, maxLength: 4 }),
    // Only the rate changes: its unit and the capacity stay.
    fc
      .record({
        base: numbers(longestMs),
        limits: fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 2, maxLength: 3 }),
      })
      .map(({ base, limits }) =>
        limits.map((limit) => ({ ...base, windowMs: Math.min(101, longestMs), burst: 60, limit })),
      ),
  );
}

export function stepsOf(longestWaitMs: number) {
  return fc.array(
    fc.record({
      waitMs: fc.oneof(
        { weight: 4, arbitrary: fc.constant(0) },
        { weight: 2, arbitrary: fc.integer({ min: 1, max: 5 }) },
        { weight: 1, arbitrary: fc.integer({ min: 6, max: longestWaitMs }) },
      ),
      kind: fc.oneof(
        { weight: 8, arbitrary: fc.constant("check" as const) },
        { weight: 2, arbitrary: fc.constant("charge" as const) },
        { weight: 5, arbitrary: fc.constant("refund" as const) },
        { weight: 5, arbitrary: fc.constant("edit" as const) },
        { weight: 1, arbitrary: fc.constantFrom("nameless" as const, "reset" as const) },
      ),
      cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 40 })),
      /** Which of the charges that stand, or of the states of the rule. */
      which: fc.nat({ max: 1_000 }),
    }),
    { minLength: 4, maxLength: 50, size: "max" },
  );
}
export type Step =
  ReturnType<typeof stepsOf> extends fc.Arbitrary<infer S> ? (S extends (infer One)[] ? One : never) : never;

export interface Counted {
  refunds: number;
  /** After an edit of the rule since the charge. */
  refundsAfterEdits: number;
  /** Those of them that gave anything back, as far as the clock stood still meanwhile. */
  givenAfterEdits: number;
}

interface Past {
  readonly happened: Happened;
  readonly check: Check;
  readonly reply: StoreReply;
  readonly entryId: string;
  readonly edits: number;
}

interface RunOptions {
  readonly id: string;
  readonly store: Pick<Store, "decide" | "refund" | "giveBack" | "reset">;
}

/** One rule with one counter, on one store. */
export class EditedRun {
  readonly #options: RunOptions;
  readonly #books;
  #book;
  #edits = 0;
  #names = 0;
  #happened: Happened[] = [];
  #standing: Past[] = [];
  readonly counted: Counted;

  constructor(form: Form, states: readonly Numbers[], counted: Counted, options: RunOptions) {
    this.#options = options;
    this.counted = counted;
    this.#books = states.map((numbers) => compileRuleBook([ruleOf(options.id, form, numbers)], 1));
    this.#book = this.#books[0]!;
  }

  get policy(): Policy {
    return this.#check(0).plan.policy;
  }

  async step({ kind, cost, which }: Step): Promise<void> {
    if (kind === "check" || kind === "charge") await this.take(cost, kind === "charge");
    else if (kind === "edit") this.edit(which % this.#books.length);
    else if (kind === "reset") await this.reset();
    else if (kind === "nameless") await this.giveBack(cost);
    else if (this.#standing.length > 0) await this.refund(which % this.#standing.length);
    await this.judge();
  }

  edit(to: number): void {
    if (this.#book === this.#books[to]) return;
    this.#book = this.#books[to]!;
    this.#edits++;
  }

  async take(cost: number, isCharge = false): Promise<void> {
    const made = this.#check(cost);
    const [check] = (isCharge ? asCharges([made]) : [made]) as [Check];
    const entryId = `e${this.#names++}`;
    const reply = await this.#decide({ checks: [check], charge: true, entryId, ...ANONYMOUS });
    const [{ charged }] = reply.verdicts as [StoreReply["verdicts"][number]];
    const kind = charged ? "charge" : "refused";
    const happened: Happened = { kind, atMs: reply.nowMs, units: check.cost, policy: check.plan.policy };
    this.#happened.push(happened);
    if (charged) this.#standing.push({ happened, check, reply, entryId, edits: this.#edits });
    // A charge may be past the limit, and is then refused in name.
    if (charged && !reply.verdicts[0]!.allowed) this.#happened.push({ ...happened, kind: "refused" });
  }

  /** Of windows it takes the newest, whoever charged them: a refund by name then has nothing of its own left. */
  async giveBack(cost: number): Promise<void> {
    if (!isBucket(this.policy)) return;
    await this.#options.store.giveBack([this.#check(cost)]);
    const atMs = await this.nowMs();
    this.#happened.push({ kind: "nameless", atMs, units: cost, policy: this.policy });
  }

  async refund(which: number): Promise<void> {
    const [past] = this.#standing.splice(which, 1) as [Past];
    const before = await this.look();
    await this.#options.store.refund({
      charges: [chargedBy(past.reply, 0, past.check, past.entryId)],
      id: undefined,
    });
    past.happened.units = 0;
    const after = await this.look();
    assert.ok(after.room >= before.room, `a refund left ${after.room} where there were ${before.room}`);
    this.counted.refunds++;
    if (past.edits === this.#edits) return;
    this.counted.refundsAfterEdits++;
    if (after.room > before.room && after.atMs === before.atMs) this.counted.givenAfterEdits++;
  }

  /** What was charged before is still refunded at times: that must give nothing back. */
  async reset(): Promise<void> {
    await this.#options.store.reset([this.#check(0).key]);
    this.#happened = [];
  }

  async look(): Promise<{ room: number; atMs: number }> {
    const { verdicts, nowMs } = await this.#decide({
      checks: [this.#check(0)],
      charge: false,
      entryId: "",
      ...ANONYMOUS,
    });
    return { room: verdicts[0]!.remaining, atMs: nowMs };
  }

  async judge(): Promise<void> {
    const { room, atMs } = await this.look();
    const most = worldOf(this.policy, this.#happened, atMs);
    assert.ok(room <= most, `room for ${room}, and for ${most} had what was refunded never been charged`);
  }

  async nowMs(): Promise<number> {
    return (await this.look()).atMs;
  }

  #check(cost: number): Check {
    return this.#book.checks({}, cost)[0]!;
  }

  async #decide(request: StoreRequest): Promise<StoreReply> {
    return this.#options.store.decide(request);
  }
}

const ANONYMOUS = { id: undefined, fingerprint: "", rulesVersion: 1 };

function ruleOf(id: string, form: Form, { limit, windowMs, burst }: Numbers): Rule {
  const rule = { id, key: [], limit, window: `${windowMs}ms`, ...form };
  if (burst === undefined) return rule as Rule;
  if (form.algorithm === "gcra") return { ...rule, burst } as Rule;
  if (form.algorithm !== "token-bucket") return rule as Rule;
  const { window: every, ...bucket } = rule;
  return { ...bucket, limit: burst, refill: { amount: limit, every } } as Rule;
}
