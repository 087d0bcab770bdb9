/**
 * Quota buckets of several Envoys, modelled on Envoy 1.40's client, in virtual time: delayed messages, reports that cross them, expired and
 * lost assignments, alongside checks of the same counter.
 */
import { createLimiter, type Rule } from "sluice";
import { outsideUnits } from "sluice/internal";
import { virtualClock } from "sluice/testing";
import { expect, test } from "vitest";
import { QuotaBucket } from "./quota-bucket.js";
import type { BucketAction } from "./quota-messages.js";

const rolling: Rule = {
  id: "r",
  key: ["user"],
  algorithm: "rolling-window",
  limit: 100,
  window: "20s",
  prefetch: "10s",
};

function world(...rules: Rule[]) {
  const clock = virtualClock(1_000_000);
  const limiter = createLimiter({ rules, clock });
  let holders = 0;
  const bucket = () =>
    new QuotaBucket({
      id: { bucket: { user: "u" } },
      attributes: { user: "u" },
      units: outsideUnits(limiter),
      isLeftOut: () => false,
      newHolder: () => `h${holders++}`,
      now: () => clock.now(),
    });
  return { clock, limiter, bucket };
}

/** Modelled on `global_client_impl.cc`. */
class ModelEnvoy {
  tokens = 0;
  max = 0;
  passed = 0;
  denied = 0;
  #endsAtMs = Number.NEGATIVE_INFINITY;

  apply(actions: readonly BucketAction[], nowMs: number): void {
    for (const { quotaAssignmentAction } of actions) {
      if (quotaAssignmentAction === undefined) continue;
      const { rateLimitStrategy, assignmentTimeToLive } = quotaAssignmentAction;
      const isKept = this.max > 0 && nowMs < this.#endsAtMs;
      this.#endsAtMs = nowMs + assignmentTimeToLive.seconds * 1_000;
      if ("blanketRule" in rateLimitStrategy) {
        this.tokens = this.max = 0;
        continue;
      }
      const { maxTokens } = rateLimitStrategy.tokenBucket as { maxTokens: number };
      if (isKept && this.max === maxTokens) continue;
      this.tokens = isKept ? Math.floor((maxTokens * this.tokens) / this.max) : maxTokens;
      this.max = maxTokens;
    }
  }

  request(nowMs: number): boolean {
    if (nowMs >= this.#endsAtMs) this.tokens = this.max = 0;
    if (this.tokens < 1) {
      this.denied++;
      return false;
    }
    this.tokens--;
    this.passed++;
    return true;
  }

  takeReport(): { allowed: number; denied: number } {
    const report = { allowed: this.passed, denied: this.denied };
    this.passed = this.denied = 0;
    return report;
  }
}

test("the first report gets the rule's even share of a term, or half of what is left", async () => {
  const { bucket } = world(rolling);
  const envoy = new ModelEnvoy();
  const { outcome, actions } = await bucket().report({ allowed: 0, denied: 1 });
  expect(outcome).toBe("units");
  envoy.apply(actions, 0);
  expect(envoy.tokens).toBe(50);
});

test("units held by an Envoy are not available to checks of the same counter, and return if unused", async () => {
  const { bucket, limiter, clock } = world(rolling);
  const one = bucket();
  await one.report({ allowed: 0, denied: 1 });
  expect((await limiter.peek({ user: "u" })).remaining).toBe(50);
  for (let i = 0; i < 12; i++) {
    clock.advance(5_000);
    await one.report({ allowed: 0, denied: 0 });
  }
  // An eighth of the even share stays with the Envoy for its next requests.
  expect((await limiter.peek({ user: "u" })).remaining).toBe(93);
});

test("requests that passed without an assignment are charged, once, and at most one full limit per report", async () => {
  const { bucket, limiter } = world(rolling);
  const one = bucket();
  await one.report({ allowed: 30, denied: 0 });
  const { remaining } = await limiter.peek({ user: "u" });
  expect(remaining).toBe(100 - 30 - 50);
  await one.report({ allowed: 2 ** 32 - 1, denied: 0 });
  const { debt } = await limiter.charge({ user: "u" }, { cost: 0 });
  expect(debt ?? 0).toBeLessThanOrEqual(100);
});

test("an Envoy gets DENY_ALL if no units are left", async () => {
  const { bucket, limiter } = world(rolling);
  await limiter.charge({ user: "u" }, { cost: 100 });
  const { outcome, actions } = await bucket().report({ allowed: 0, denied: 1 });
  expect(outcome).toBe("denied");
  expect(actions).toMatchObject([{ quotaAssignmentAction: { rateLimitStrategy: { blanketRule: 1 } } }]);
});

test("no rule: everything passes; a rule without prefetch: no assignment, and what passed is counted", async () => {
  const free = world();
  expect((await free.bucket().report({ allowed: 1, denied: 0 })).outcome).toBe("unlimited");
  const { prefetch: _, ...plain } = rolling as Rule & { prefetch: string };
  const { bucket, limiter } = world(plain as Rule);
  expect(await bucket().report({ allowed: 7, denied: 0 })).toEqual({ outcome: "none", actions: [], unfit: "r" });
  expect((await limiter.peek({ user: "u" })).remaining).toBe(93);
});

test("a limit of 0 denies, a rule in shadow mode only counts", async () => {
  const { prefetch: _, ...plain } = rolling as Rule & { prefetch: string };
  expect(
    (
      await world({ ...plain, limit: 0 } as Rule)
        .bucket()
        .report({ allowed: 0, denied: 1 })
    ).outcome,
  ).toBe("denied");
  const { bucket, limiter } = world({ ...rolling, mode: "shadow" });
  expect((await bucket().report({ allowed: 7, denied: 0 })).outcome).toBe("unlimited");
  expect((await limiter.peek({ user: "u" })).checks[0]!.remaining).toBe(93);
});

test("under several rules the tightest decides, each at its own cost", async () => {
  const { bucket } = world(rolling, { ...rolling, id: "s", limit: 100, cost: 10 });
  const envoy = new ModelEnvoy();
  envoy.apply((await bucket().report({ allowed: 0, denied: 1 })).actions, 0);
  expect(envoy.tokens).toBe(5);
});

test("values that no rule can be matched with are denied, so that clients cannot bypass limits with them", async () => {
  const { clock, limiter } = world({ ...rolling, cost: { attribute: "tokens" } } as Rule);
  const bucket = new QuotaBucket({
    id: { bucket: { user: "u", tokens: "many" } },
    attributes: { user: "u", tokens: "many" },
    units: outsideUnits(limiter),
    isLeftOut: () => false,
    newHolder: () => "h",
    now: () => clock.now(),
  });
  expect((await bucket.report({ allowed: 0, denied: 1 })).outcome).toBe("denied");
});

test("a lower limit takes units back from the Envoy", async () => {
  const { bucket, limiter } = world(rolling);
  const one = bucket();
  const envoy = new ModelEnvoy();
  envoy.apply((await one.report({ allowed: 0, denied: 1 })).actions, 0);
  limiter.setRules([{ ...rolling, limit: 10 }]);
  const { outcome, actions } = await one.renew({ anew: true });
  expect(outcome).toBe("denied");
  envoy.apply(actions, 1);
  expect(envoy.request(2)).toBe(false);
});

interface Played {
  readonly uses: number[];
  readonly asked: number;
}

/** `late`: maximum delay of messages to an Envoy. */
async function play(
  rule: Rule,
  { seed, late = 900, perSecond = 20 }: { seed: number; late?: number; perSecond?: number },
): Promise<Played> {
  const { clock, limiter, bucket } = world(rule);
  let state = seed;
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
  const startMs = clock.now();
  const uses: number[] = [];
  let asked = 0;
  const envoys = Array.from({ length: 3 }, (_, i) => ({
    envoy: new ModelEnvoy(),
    bucket: bucket(),
    reportsAtMs: startMs + i * 700,
    lastArrivalMs: 0,
  }));
  const inFlight: { atMs: number; deliver: () => void }[] = [];
  while (clock.now() < startMs + 180_000) {
    clock.advance(50);
    const nowMs = clock.now();
    for (const message of inFlight.splice(0)) {
      if (message.atMs <= nowMs) message.deliver();
      else inFlight.push(message);
    }
    for (const one of envoys) {
      // Traffic comes and goes, independently for each Envoy.
      const isBusy = random() < 0.9 === Math.floor((nowMs + one.reportsAtMs) / 30_000) % 3 > 0;
      if (isBusy && random() < perSecond / 20) {
        asked++;
        if (one.envoy.request(nowMs)) uses.push(nowMs);
      }
      const send = (actions: readonly BucketAction[]): void => {
        // Nothing is sent behind a message that is still queued.
        if (random() < 0.1) {
          one.bucket.unsent();
          return;
        }
        // A stream preserves order.
        one.lastArrivalMs = Math.max(one.lastArrivalMs, nowMs + random() * late);
        inFlight.push({ atMs: one.lastArrivalMs, deliver: () => one.envoy.apply(actions, clock.now()) });
      };
      if (one.reportsAtMs <= nowMs) {
        one.reportsAtMs = nowMs + 5_000;
        const report = one.envoy.takeReport();
        // A lost stream loses its report; the next stream is a new holder.
        if (random() < 0.05) one.bucket = bucket();
        else send((await one.bucket.report(report)).actions);
      } else if (one.bucket.dueMonotonicMs <= nowMs) send((await one.bucket.renew()).actions);
    }
    if (random() < 0.05 && (await limiter.check({ user: "u" })).allowed) uses.push(nowMs);
  }
  await limiter.close();
  return { uses, asked };
}

function mostIn(uses: readonly number[], windowMs: number): number {
  let first = 0;
  let most = 0;
  for (let last = 0; last < uses.length; last++) {
    while (uses[first]! <= uses[last]! - windowMs) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

test.each(Array.from({ length: 12 }, (_, i) => i + 1))("no window holds more than the limit, seed %i", async (seed) => {
  const { uses, asked } = await play(rolling, { seed });
  expect(mostIn(uses, 20_000)).toBeLessThanOrEqual(100);
  // Late reports and lost messages waste quota, but most of it is still used.
  expect(asked).toBeGreaterThan(3_000);
  expect(uses.length).toBeGreaterThan(300);
});

test.each(Array.from({ length: 6 }, (_, i) => i + 1))(
  "no fixed window holds more than the limit, seed %i",
  async (seed) => {
    const { uses } = await play({ ...rolling, algorithm: "fixed-window" } as Rule, { seed });
    const counts = new Map<number, number>();
    for (const atMs of uses) counts.set(Math.floor(atMs / 20_000), (counts.get(Math.floor(atMs / 20_000)) ?? 0) + 1);
    expect(Math.max(...counts.values())).toBeLessThanOrEqual(100);
    expect(uses.length).toBeGreaterThan(300);
  },
);

test.each(Array.from({ length: 6 }, (_, i) => i + 1))(
  "a bucket is never used beyond what it holds and refills, seed %i",
  async (seed) => {
    const { uses } = await play({ ...rolling, algorithm: "token-bucket" } as Rule, { seed });
    for (const spanMs of [1_000, 5_000, 20_000, 60_000])
      expect(mostIn(uses, spanMs)).toBeLessThanOrEqual(100 + spanMs / 200);
    expect(uses.length).toBeGreaterThan(300);
  },
);
