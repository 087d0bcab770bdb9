/** Runs the table of schedules through a limiter on a given store. A new store passes this, or is not one. */
import { beforeEach, describe, expect, test } from "vitest";
import type { Decision, Limiter, Rule } from "../../packages/sluice/src/index.js";
import { lateRefunds, refundsAtOnce } from "./refunds.js";
import type { Schedule, Step } from "./schedules/schedule.js";
import { schedules } from "./schedules.js";

export interface StoreUnderTest {
  readonly name: string;
  /** Its counters are those of no other schedule, as long as schedules run one after the other and `clear` between them. */
  limiter(rules: readonly Rule[]): Limiter;
  clear?(): Promise<unknown>;
  /** Its counters are its own, whatever runs beside it. Given where time is real: schedules that wait then wait side by side. */
  limiterApart?(rules: readonly Rule[]): Limiter;
  /** Lets time pass for the store. */
  wait(ms: number): Promise<void>;
}

/** The stores of one server after each other, then what waits for time: on all of them side by side. */
export function conformance(stores: readonly StoreUnderTest[]): void {
  for (const store of stores) {
    describe(`${store.name}: at once`, () => {
      beforeEach(async () => {
        await store.clear?.();
      });
      for (const schedule of schedules.filter((one) => !waits(one))) test(schedule.name, () => run(schedule, store));
      refundsAtOnce(store);
    });
  }
  for (const { limiterApart, ...store } of stores) {
    const isApart = limiterApart !== undefined;
    const apart = isApart ? { ...store, limiter: limiterApart } : store;
    // Neighbours that are concurrent run at the same time.
    describe(`${store.name}: in time`, { concurrent: isApart }, () => {
      for (const schedule of schedules.filter(waits)) test(schedule.name, () => run(schedule, apart));
      lateRefunds(apart);
    });
  }
}

/** Longer than until the next millisecond. */
function waits({ steps }: Schedule): boolean {
  return steps.some((step) => "wait" in step && step.wait >= 100);
}

/** As many calls, some hundreds at a time. */
async function inAll<T>(count: number, call: (i: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let first = 0; first < count; first += 400) {
    const size = Math.min(400, count - first);
    results.push(...(await Promise.all(Array.from({ length: size }, (_, i) => call(first + i)))));
  }
  return results;
}

async function run(schedule: Schedule, store: StoreUnderTest): Promise<void> {
  const index = schedules.indexOf(schedule);
  const limiter = store.limiter(schedule.rules);
  const decisions: Decision[] = [];
  // Request ids outlive a schedule on a shared server.
  const ownId = (id: string): string => `${index}-${id}`;
  try {
    for (const [n, step] of schedule.steps.entries()) await take(step, n);
  } finally {
    await limiter.close();
  }

  async function take(step: Step, n: number): Promise<void> {
    const at = `step ${n}: ${JSON.stringify(step).slice(0, 200)}`;
    if ("check" in step) {
      const options = { ...(step.cost !== undefined && { cost: step.cost }), ...(step.id && { id: ownId(step.id) }) };
      if ("rejects" in step) {
        await expect(limiter.check(step.check, options), at).rejects.toMatchObject({ code: step.rejects });
        return;
      }
      const decision = await limiter.check(step.check, { ...options, maxWaitMs: step.maxWaitMs });
      decisions.push(decision);
      expect(decision, at).toMatchObject(step.gives);
      if (!decision.allowed) expect(decision.retryAfterMs, at).toBeGreaterThan(0);
      if (!decision.allowed) expect(decision.lease, at).toBeUndefined();
    } else if ("charge" in step) {
      const options = { ...(step.cost !== undefined && { cost: step.cost }), ...(step.id && { id: ownId(step.id) }) };
      expect(await limiter.charge(step.charge, options), at).toMatchObject(step.gives);
    } else if ("all" in step) {
      const options = step.id === undefined ? {} : { id: ownId(step.id) };
      if ("rejects" in step) {
        await expect(limiter.checkAll(step.all, options), at).rejects.toMatchObject({ code: step.rejects });
        return;
      }
      const { decision, parts } = await limiter.checkAll(step.all, options);
      decisions.push(decision);
      expect(decision, at).toMatchObject(step.gives);
      for (const [i, gives] of step.parts.entries()) expect(parts[i]![0] ?? {}, at).toMatchObject(gives);
    } else if ("peek" in step) {
      const options = { ...(step.cost !== undefined && { cost: step.cost }), ...(step.id && { id: ownId(step.id) }) };
      expect(await limiter.peek(step.peek, options), at).toMatchObject(step.gives);
    } else if ("charges" in step) {
      const { charges, of, cost, id } = step;
      await inAll(charges, (i) => limiter.charge(of, { cost, id: ownId(`${id}-${i}`) }));
    } else if ("refunds" in step) {
      const given = await inAll(step.refunds, (i) => limiter.refund(ownId(`${step.id}-${i}`)));
      expect(given, at).not.toContain(false);
    } else if ("wait" in step) {
      await store.wait(step.wait);
    } else if ("refund" in step) {
      expect(await limiter.refund(decisions[step.refund]!), at).toBe(step.gives);
    } else if ("refundId" in step) {
      expect(await limiter.refund(ownId(step.refundId)), at).toBe(step.gives);
    } else if ("giveBack" in step) {
      const options = step.cost === undefined ? {} : { cost: step.cost };
      expect(await limiter.giveBack(step.giveBack, options), at).toBe(step.gives);
    } else if ("release" in step) {
      expect(await decisions[step.release]!.lease!.release(), at).toBe(step.gives);
    } else if ("renew" in step) {
      expect(await decisions[step.renew]!.lease!.renew(), at).toBe(step.gives);
    } else if ("settle" in step) {
      expect(await limiter.settle(decisions[step.settle]!.reservation!.id, step.costs), at).toEqual(step.gives);
    } else if ("extend" in step) {
      const extended = await limiter.extend(decisions[step.extend]!.reservation!.id, step.costs);
      expect(extended, at).toMatchObject(step.gives);
    } else if ("cancel" in step) {
      expect(await limiter.cancel(decisions[step.cancel]!.reservation!.id), at).toEqual(step.gives);
    } else if ("reset" in step) {
      await limiter.reset(step.reset, step.attributes);
    } else {
      limiter.setRules(step.setRules, step.version);
    }
  }
}
