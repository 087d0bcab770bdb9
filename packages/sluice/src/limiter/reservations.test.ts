import { expect, test, vi } from "vitest";
import { SluiceError } from "../errors.js";
import type { Attributes, Rule } from "../rules/rule.js";
import { MemoryStore } from "../store/memory/memory-store.js";
import { virtualClock } from "../testing.js";
import { createLimiter } from "./limiter.js";

const tokens: Rule = {
  id: "tokens",
  key: ["org"],
  algorithm: "token-bucket",
  limit: 1_000,
  window: "1h",
  cost: { attribute: "t" },
  estimate: { attribute: "max", default: 200 },
};
const requests: Rule = { id: "requests", key: ["org"], algorithm: "fixed-window", limit: 3, window: "1h" };

const remainingOf = async (limiter: ReturnType<typeof createLimiter>, org = "a"): Promise<number> =>
  (await limiter.peek({ org }, { cost: 0 })).checks[0]!.remaining;

test("a check holds an estimate, and settle charges the real cost", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens, requests] });
  const { reservation, allowed } = await limiter.check({ org: "a", max: 300 });
  expect([allowed, reservation!.held, reservation!.expiresAfterMs]).toEqual([true, { tokens: 300 }, 300_000]);
  expect(await remainingOf(limiter)).toBe(700);
  const settled = { settled: true, charged: { tokens: 120 }, overrun: {} };
  expect(await limiter.settle(reservation!.id, { t: 120 })).toEqual(settled);
  expect(await limiter.settle(reservation!.id, { t: 999 })).toEqual(settled);
  expect(await limiter.cancel(reservation!.id)).toEqual(settled);
  expect(await remainingOf(limiter)).toBe(880);
});

test("a decision reports what a request may cost in excess of what is held, if it declares its bound and may finish", async () => {
  const clock = virtualClock();
  const rules: Rule[] = [
    { ...tokens, limit: 100, estimate: { attribute: "max", default: 20 } },
    { ...tokens, id: "cut", limit: 100, estimate: { attribute: "max", default: 20, overrun: "stop" } },
  ];
  const limiter = createLimiter({ clock, rules });
  const { reservation } = await limiter.check({ org: "a", max: 250 });
  expect(reservation).toMatchObject({ held: { tokens: 100, cut: 100 }, mayOverrun: { tokens: 150 } });
  const settled = await limiter.settle(reservation!.id, { t: 250 });
  expect(settled.overrun.tokens).toBe(reservation!.mayOverrun!.tokens);
  const other = await limiter.check({ org: "b" });
  expect(other.reservation).not.toHaveProperty("mayOverrun");
});

test("a request that declares its cost is charged, and reserves nothing", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens] });
  expect((await limiter.check({ org: "a", t: 40, max: 300 })).reservation).toBeUndefined();
  expect(await remainingOf(limiter)).toBe(960);
});

test("a refused request holds nothing under any of its rules", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens, { ...requests, limit: 1 }] });
  expect((await limiter.check({ org: "a" })).reservation!.held).toEqual({ tokens: 200 });
  const refused = await limiter.check({ org: "a" });
  expect([refused.allowed, refused.reservation]).toEqual([false, undefined]);
  expect(await remainingOf(limiter)).toBe(800);
});

test("the first request is not refused because of its estimate, whatever the limit", async () => {
  for (const limit of [1, 2, 50]) {
    for (const algorithm of ["token-bucket", "gcra", "fixed-window", "sliding-counter", "rolling-window"] as const) {
      const limiter = createLimiter({ clock: virtualClock(), rules: [{ ...tokens, algorithm, limit } as Rule] });
      const decision = await limiter.check({ org: "a", max: 4_096 });
      expect([decision.allowed, decision.reservation!.held]).toEqual([true, { tokens: limit }]);
    }
  }
  const denied = createLimiter({ clock: virtualClock(), rules: [{ ...tokens, limit: 0 }] });
  expect((await denied.check({ org: "a" })).allowed).toBe(false);
});

test("work that cost more than was held leaves a debt, which must be paid before the next check passes", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens] });
  const { reservation } = await limiter.check({ org: "a" });
  expect(await limiter.settle(reservation!.id, { t: 1_500 })).toEqual({
    settled: true,
    charged: { tokens: 1_500 },
    overrun: { tokens: 1_300 },
  });
  expect(await limiter.check({ org: "a" })).toMatchObject({ allowed: false, remaining: 0, debt: 500, reason: "limit" });
});

test("an extension is refused under stop if nothing is left, and goes into debt under finish", async () => {
  for (const overrun of ["stop", "finish"] as const) {
    const rule: Rule = { ...tokens, estimate: { default: 200, overrun } };
    const limiter = createLimiter({ clock: virtualClock(), rules: [rule] });
    const { reservation } = await limiter.check({ org: "a" });
    const wider = await limiter.extend(reservation!.id, { t: 900 });
    expect([wider.allowed, wider.reservation!.held]).toEqual([true, { tokens: 900 }]);
    // Repeating it asks for nothing more.
    expect((await limiter.extend(reservation!.id, { t: 900 })).reservation!.held).toEqual({ tokens: 900 });
    const widest = await limiter.extend(reservation!.id, { t: 1_100 });
    expect(widest.allowed).toBe(overrun === "finish");
    expect(widest.debt).toBe(overrun === "finish" ? 100 : undefined);
    await limiter.settle(reservation!.id, { t: 10 });
    expect(await remainingOf(limiter)).toBe(990);
  }
});

test("learned costs cap what requests ask for, and are separate for other keys", async () => {
  const rule: Rule = { ...tokens, limit: 10_000_000, overrides: [{ match: { org: "big" }, limit: 20_000_000 }] };
  const limiter = createLimiter({ rules: [rule] });
  for (let i = 0; i < 500; i++) {
    for (const [org, cost] of [
      ["a", 50 + (i % 10)],
      ["big", 5_000],
    ] as const) {
      const { reservation } = await limiter.check({ org });
      await limiter.settle(reservation!.id, { t: cost });
    }
  }
  const heldFor = async (attributes: { org: string; max?: number }): Promise<number> =>
    (await limiter.check(attributes)).reservation!.held.tokens!;
  expect(await heldFor({ org: "a", max: 20 })).toBe(20);
  for (const attributes of [{ org: "a" }, { org: "a", max: 4_096 }]) {
    expect(await heldFor(attributes)).toBeGreaterThanOrEqual(55);
    expect(await heldFor(attributes)).toBeLessThanOrEqual(64);
  }
  expect(await heldFor({ org: "big", max: 100_000 })).toBeGreaterThan(4_500);
  await limiter.close();
});

test("an explanation shows what would be held, and how that worked out so far", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens, requests] });
  const { reservation } = await limiter.check({ org: "a" });
  await limiter.settle(reservation!.id, { t: 230 });
  const { rules } = await limiter.explain({ org: "a", max: 90 });
  expect(rules.map(({ estimate }) => estimate)).toEqual([
    { holds: 90, held: 200, settled: 230, overrun: 30 },
    undefined,
  ]);
});

test("a reservation that nobody settles expires: an event reports it, and what was held counts as spent", async () => {
  vi.useFakeTimers();
  try {
    const limiter = createLimiter({ rules: [{ ...tokens, estimate: { default: 200, ttl: "2s" } }] });
    const expired: unknown[] = [];
    limiter.on("expired", (id, held) => expired.push([id, held]));
    const first = (await limiter.check({ org: "a" })).reservation!;
    const second = (await limiter.check({ org: "a" })).reservation!;
    await limiter.settle(second.id, { t: 1 });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(expired).toEqual([[first.id, { tokens: 200 }]]);
    expect(await limiter.settle(first.id, { t: 1 })).toEqual({
      settled: false,
      charged: { tokens: 200 },
      overrun: {},
      reason: "expired",
    });
    expect(await remainingOf(limiter)).toBeLessThan(802);
    expect(limiter.reservationStats()).toMatchObject({ opened: 2, settled: 1, expired: 1, open: 0 });
    await expect(limiter.extend(first.id, { t: 900 })).rejects.toMatchObject({ code: "unknown-reservation" });
  } finally {
    vi.useRealTimers();
  }
});

test("a settlement that comes too late does not suppress the report of its reservation's expiry", async () => {
  vi.useFakeTimers();
  try {
    const limiter = createLimiter({ rules: [{ ...tokens, estimate: { default: 200, ttl: "1s" } }] });
    const expired: unknown[] = [];
    limiter.on("expired", (id, held) => expired.push([id, held]));
    const { id } = (await limiter.check({ org: "a" })).reservation!;
    await vi.advanceTimersByTimeAsync(1_100);
    expect(await limiter.settle(id, { t: 1 })).toMatchObject({ settled: false, reason: "expired" });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(expired).toEqual([[id, { tokens: 200 }]]);
    expect(limiter.reservationStats()).toMatchObject({ opened: 1, settled: 0, expired: 1, open: 0 });
  } finally {
    vi.useRealTimers();
  }
});

test("a refund gives back what a reservation holds, and a later settlement nothing more", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens, requests] });
  const byDecision = await limiter.check({ org: "a" });
  await limiter.check({ org: "b" }, { id: "x" });
  for (const [org, refund] of [
    ["a", byDecision],
    ["b", "x"],
  ] as const) {
    expect(await limiter.refund(refund)).toBe(true);
    expect(await remainingOf(limiter, org)).toBe(1_000);
    expect((await limiter.peek({ org }, { cost: 0 })).checks[1]!.remaining).toBe(3);
  }
  expect(await limiter.settle(byDecision.reservation!.id, { t: 77 })).toMatchObject({ charged: { tokens: 0 } });
  expect(await remainingOf(limiter)).toBe(1_000);
});

test.each(["fixed-window", "sliding-counter", "token-bucket", "rolling-window"] as const)(
  "%s: what an extension holds in the millisecond of a reset goes back when it is cancelled",
  async (algorithm) => {
    const limiter = createLimiter({ rules: [{ ...tokens, algorithm } as Rule], clock: virtualClock() });
    await limiter.check({ org: "a" });
    await limiter.reset("tokens", { org: "a" });
    const { reservation } = await limiter.check({ org: "a" });
    await limiter.extend(reservation!.id, { t: 800 });
    await limiter.cancel(reservation!.id);
    expect(await remainingOf(limiter)).toBe(1_000);
  },
);

test.each(["fixed-window", "sliding-counter", "token-bucket", "gcra", "rolling-window"] as const)(
  "%s: an extension by the largest possible number, given back, leaves what others were charged",
  async (algorithm) => {
    const limiter = createLimiter({ rules: [{ ...tokens, algorithm } as Rule], clock: virtualClock() });
    await limiter.check({ org: "a", t: 300 });
    const { reservation } = await limiter.check({ org: "a" });
    const extended = await limiter.extend(reservation!.id, { t: Number.MAX_SAFE_INTEGER });
    expect([extended.allowed, extended.reservation!.held.tokens]).toEqual([true, 2 ** 40]);
    await limiter.cancel(reservation!.id);
    expect(await remainingOf(limiter)).toBe(700);
  },
);

test("a refund after the settlement leaves what was settled", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens, requests] });
  const decision = await limiter.check({ org: "a" }, { id: "x" });
  await limiter.settle(decision.reservation!.id, { t: 150 });
  expect(await limiter.refund("x")).toBe(true);
  expect(await remainingOf(limiter)).toBe(850);
});

test("a repeated request id gets the same reservation", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens] });
  const first = await limiter.check({ org: "a" }, { id: "x" });
  const second = await limiter.check({ org: "a" }, { id: "x" });
  expect(second.reservation).toEqual(first.reservation);
  expect(await remainingOf(limiter)).toBe(800);
});

test.each([
  [{}, "attributes: expected the cost that the reservation waits for: t"],
  [{ max: 3 }, "attributes: expected the cost that the reservation waits for: t"],
  [{ t: -1 }, 'attributes.t: expected a whole number of at least 0, got "-1"'],
  [{ t: 0.5 }, 'attributes.t: expected a whole number of at least 0, got "0.5"'],
  [{ t: "1e3" }, 'attributes.t: expected a whole number of at least 0, got "1e3"'],
  [{ t: Number.NaN }, "attributes.t: expected a string, a finite number or a boolean, got NaN"],
  [{ t: 2 ** 53 }, 'attributes.t: expected a whole number of at least 0, got "9007199254740992"'],
  [null, "attributes: expected an object, got null"],
  [[1], "attributes: expected an object, got [1]"],
])("a settlement of %j is refused with a clear error, and changes nothing", async (attributes, message) => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens] });
  const { reservation } = await limiter.check({ org: "a" });
  const bad = attributes as never;
  await expect(limiter.settle(reservation!.id, bad)).rejects.toMatchObject({ code: "invalid-request", message });
  await expect(limiter.extend(reservation!.id, bad)).rejects.toMatchObject({ code: "invalid-request", message });
  expect(await remainingOf(limiter)).toBe(800);
});

test("an id that was tampered with gives nothing back: not for another key, not for another rule, not twice", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens] });
  const { reservation } = await limiter.check({ org: "a" });
  await limiter.check({ org: "victim" });
  const [name, where, spelled] = reservation!.id.split(".") as [string, string, string];
  const changed = (from: string, to: string): string =>
    `${name}.${where}.${Buffer.from(Buffer.from(spelled, "base64url").toString().replace(from, to)).toString("base64url")}`;
  for (const id of [
    changed("org=a", "org=victim"),
    changed(":tokens:", ":others:"),
    changed('"limit":1000', '"limit":9999'),
    changed("300000", "300001"),
    `${"A".repeat(16)}.${where}.${spelled}`,
    `${name}.l.${spelled}`,
  ]) {
    expect(await limiter.settle(id, { t: 0 })).toEqual({ settled: false, charged: {}, overrun: {}, reason: "unknown" });
  }
  expect([await remainingOf(limiter), await remainingOf(limiter, "victim")]).toEqual([800, 800]);
});

/** A store that can become unreachable. */
class FarStore extends MemoryStore {
  /** "behind": it executes the request, but the answer is lost. */
  isAway: boolean | "before" | "behind" = false;

  override settle(...args: Parameters<MemoryStore["settle"]>): ReturnType<MemoryStore["settle"]> {
    if (this.isAway) throw new SluiceError("store-unavailable", "away");
    return super.settle(...args);
  }

  override extend(...args: Parameters<MemoryStore["extend"]>): ReturnType<MemoryStore["extend"]> {
    if (this.isAway) throw new SluiceError("store-unavailable", "away");
    return super.extend(...args);
  }
}

test("a settlement while the store is away is kept, and sent when it is back", async () => {
  vi.useFakeTimers();
  try {
    const store = new FarStore();
    const limiter = createLimiter({ store, rules: [tokens] });
    const { reservation } = await limiter.check({ org: "a" });
    store.isAway = true;
    const pending = { settled: false, charged: {}, overrun: {}, reason: "pending" };
    expect(await limiter.settle(reservation!.id, { t: 150 })).toEqual(pending);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(limiter.reservationStats()).toMatchObject({ pending: 1, dropped: 0, settled: 0 });
    store.isAway = false;
    await vi.advanceTimersByTimeAsync(6_000);
    expect(limiter.reservationStats()).toMatchObject({ pending: 0, dropped: 0, settled: 1 });
    expect(await limiter.settle(reservation!.id, { t: 1 })).toMatchObject({ settled: true, charged: { tokens: 150 } });
  } finally {
    vi.useRealTimers();
  }
});

test("a kept settlement that arrives after its reservation has expired is dropped, and the expiry reported", async () => {
  vi.useFakeTimers();
  try {
    const store = new FarStore();
    const limiter = createLimiter({ store, rules: [{ ...tokens, estimate: { default: 200, ttl: "10s" } }] });
    const expired: string[] = [];
    limiter.on("expired", (id) => expired.push(id));
    const { reservation } = await limiter.check({ org: "a" });
    await vi.advanceTimersByTimeAsync(7_000);
    store.isAway = true;
    await limiter.settle(reservation!.id, { t: 150 });
    await vi.advanceTimersByTimeAsync(4_000);
    store.isAway = false;
    await vi.advanceTimersByTimeAsync(6_000);
    expect(limiter.reservationStats()).toMatchObject({ pending: 0, dropped: 1, settled: 0, expired: 1, open: 0 });
    expect(expired).toEqual([reservation!.id]);
  } finally {
    vi.useRealTimers();
  }
});

/** Two instances on one store, and the settlements that each is notified of. */
function twoInstances() {
  const shared = new MemoryStore();
  const heard: string[] = [];
  const [near, far] = ["near", "far"].map((name) => {
    // The store as this instance reaches it.
    const store = new FarStore();
    for (const call of ["decide", "learn", "holdState"] as const)
      store[call] = (...args: never[]) => (shared[call] as (...args: never[]) => never)(...args);
    store.settle = (...args) => {
      const reply = store.isAway === "before" ? undefined : shared.settle(...args);
      if (store.isAway !== false || reply === undefined) throw new SluiceError("store-unavailable", "away");
      return reply;
    };
    const limiter = createLimiter({ store, rules: [tokens] });
    limiter.on("settled", (_, { charged }) => heard.push(`${name} ${charged.tokens}`));
    return { limiter, store };
  });
  return { near: near!, far: far!, heard };
}

test.each([
  ["before it counted: another instance settles", "before", 150, ["near 150"], 0],
  ["before it counted: another instance settles at other costs", "before", 90, ["near 90"], 0],
  ["after it counted: another instance finds it settled", "behind", 150, ["far 150"], 1],
] as const)("a settlement whose answer was lost %s, and is reported once", async (_, isAway, units, told, settled) => {
  vi.useFakeTimers();
  try {
    const { near, far, heard } = twoInstances();
    const { reservation } = await far.limiter.check({ org: "a" });
    far.store.isAway = isAway;
    // The client sends it twice, here and then elsewhere.
    for (let i = 0; i < 2; i++)
      expect(await far.limiter.settle(reservation!.id, { t: 150 })).toMatchObject({ reason: "pending" });
    expect(await near.limiter.settle(reservation!.id, { t: units })).toMatchObject({ settled: true });
    far.store.isAway = false;
    await vi.advanceTimersByTimeAsync(6_000);
    expect(heard).toEqual(told);
    expect(far.limiter.reservationStats()).toMatchObject({ pending: 0, dropped: 0, settled, open: 0 });
    expect(await far.limiter.settle(reservation!.id, { t: 1 })).toMatchObject({ settled: true });
    expect(heard).toEqual(told);
  } finally {
    vi.useRealTimers();
  }
});

test("a settlement that is repeated while it is kept is reported once", async () => {
  vi.useFakeTimers();
  try {
    const { far, heard } = twoInstances();
    const { reservation } = await far.limiter.check({ org: "a" });
    far.store.isAway = "behind";
    await far.limiter.settle(reservation!.id, { t: 150 });
    far.store.isAway = false;
    for (let i = 0; i < 2; i++)
      expect(await far.limiter.settle(reservation!.id, { t: 70 })).toMatchObject({ charged: { tokens: 150 } });
    await vi.advanceTimersByTimeAsync(6_000);
    expect(heard).toEqual(["far 150"]);
    expect(far.limiter.reservationStats()).toMatchObject({ pending: 0, settled: 1 });
  } finally {
    vi.useRealTimers();
  }
});

test("an unreported cost, which stands as held, teaches nothing", async () => {
  const both: Rule = { ...tokens, id: "input", cost: { attribute: "in" }, estimate: { default: 30 } };
  const limiter = createLimiter({
    clock: virtualClock(),
    rules: [tokens, both].map((rule) => ({ ...rule, limit: 10 ** 6 }) as Rule),
  });
  for (let i = 0; i < 30; i++) {
    const { reservation } = await limiter.check({ org: "a" });
    expect(await limiter.settle(reservation!.id, { in: 7 })).toMatchObject({ charged: { tokens: 200, input: 7 } });
  }
  const learned = async (rule: string): Promise<number> => (await limiter.learnedCosts(rule))[0]!.requests;
  expect([await learned("tokens"), await learned("input")]).toEqual([0, 30]);
  await limiter.close();
});

test("a settlement that could not be sent before its reservation expired is dropped", async () => {
  vi.useFakeTimers();
  try {
    const store = new FarStore();
    const limiter = createLimiter({ store, rules: [tokens] });
    const { reservation } = await limiter.check({ org: "a" });
    store.isAway = true;
    await limiter.settle(reservation!.id, { t: 150 });
    await vi.advanceTimersByTimeAsync(310_000);
    expect(limiter.reservationStats()).toMatchObject({ pending: 0, dropped: 1, settled: 0 });
  } finally {
    vi.useRealTimers();
  }
});

test("while the store is away an extension goes on under finish, and stops under stop", async () => {
  for (const overrun of ["stop", "finish"] as const) {
    const store = new FarStore();
    const limiter = createLimiter({ store, rules: [{ ...tokens, estimate: { default: 1, overrun } }] });
    const { reservation } = await limiter.check({ org: "a" });
    store.isAway = true;
    const { allowed, degraded, reason } = await limiter.extend(reservation!.id, { t: 5 });
    expect([allowed, degraded, reason]).toEqual(
      overrun === "finish" ? [true, "allow", undefined] : [false, "deny", "store-unavailable"],
    );
  }
});

test("a charge is not estimated, and a batch of parts holds for each of them", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [tokens] });
  expect((await limiter.charge({ org: "a" })).reservation).toBeUndefined();
  expect(await remainingOf(limiter)).toBe(999);
  const { decision } = await limiter.checkAll([{ attributes: { org: "a" } }, { attributes: { org: "b", max: 3 } }]);
  expect(decision.reservation!.held).toEqual({ tokens: 3 });
  await limiter.settle(decision.reservation!.id, { t: 0 });
  expect([await remainingOf(limiter), await remainingOf(limiter, "b")]).toEqual([999, 1_000]);
});

test.each<[string, Attributes[], Record<string, unknown>]>([
  ["none tells its cost", [{}, {}], { held: { tokens: 1_000 } }],
  ["both name a bound", [{ max: 300 }, { max: 900 }], { held: { tokens: 1_000 }, mayOverrun: { tokens: 200 } }],
  ["one names a bound", [{ max: 300 }, {}], { held: { tokens: 900 } }],
  ["the first tells its cost", [{ t: 400 }, {}], { held: { tokens: 1_000 } }],
  ["the last tells its cost", [{ max: 100 }, { t: 400 }], { held: { tokens: 500 }, mayOverrun: { tokens: 0 } }],
  ["one tells a cost that fills the limit", [{ t: 1_000 }, { max: 5 }], { held: { tokens: 1_000 } }],
])(
  "if several parts of a request share a counter, %s: it holds for both of them, and no more than it can bear",
  async (_, parts, made) => {
    for (const attributes of [parts, [...parts].reverse()]) {
      const limiter = createLimiter({
        clock: virtualClock(),
        rules: [{ ...tokens, estimate: { attribute: "max", default: 600 } }],
      });
      const all = attributes.map((part) => ({ attributes: { org: "a", ...part } }));
      const { decision } = await limiter.checkAll(all);
      expect([decision.allowed, decision.reservation]).toMatchObject([true, made]);
      expect(await limiter.settle(decision.reservation!.id, { t: 450 })).toMatchObject({ charged: { tokens: 450 } });
      expect(await remainingOf(limiter)).toBe(550);
    }
  },
);

test("parts that declare more than the limit are refused, and so is a limit of 0", async () => {
  const limiter = createLimiter({
    clock: virtualClock(),
    rules: [tokens, { ...tokens, id: "denied", match: { org: "b" }, limit: 0 }],
  });
  const parts = (org: string, t: number) => [{ attributes: { org } }, { attributes: { org, t } }];
  expect((await limiter.checkAll(parts("a", 1_001))).decision).toMatchObject({ reason: "cost-exceeds-limit" });
  expect((await limiter.checkAll(parts("b", 1))).decision).toMatchObject({ allowed: false, violated: ["denied"] });
  expect(await remainingOf(limiter)).toBe(1_000);
});

test("parts with different numbers hold what the tighter ones allow; the first request passes at any limit", async () => {
  for (const limit of [1, 2, 50]) {
    for (const algorithm of ["token-bucket", "gcra", "fixed-window", "sliding-counter", "rolling-window"] as const) {
      const overrides = [{ match: { tier: "gold" }, limit: 5_000 }];
      const rule = { ...tokens, algorithm, limit, match: { tier: "*" }, overrides, estimate: { default: 500 } } as Rule;
      for (const tiers of [
        ["free", "free"],
        ["gold", "free"],
        ["free", "gold"],
      ]) {
        const limiter = createLimiter({ clock: virtualClock(), rules: [rule] });
        const { decision } = await limiter.checkAll(tiers.map((tier) => ({ attributes: { org: "a", tier } })));
        expect([decision.allowed, decision.reservation?.held]).toEqual([true, { tokens: limit }]);
      }
    }
  }
});

test("candidate, shadow, variant and override are held and settled with the rule itself", async () => {
  const rules: Rule[] = [
    {
      ...tokens,
      candidate: { limit: 250 },
      overrides: [{ match: { org: "small" }, limit: 100 }],
      variants: [{ name: "only", weight: 1, algorithm: "rolling-window", window: "1h" }],
    } as Rule,
    { ...tokens, id: "shadowed", mode: "shadow", limit: 150 },
  ];
  const limiter = createLimiter({ clock: virtualClock(), rules });
  const { reservation, checks } = await limiter.check({ org: "small" });
  expect(reservation!.held).toEqual({ tokens: 100, shadowed: 150 });
  expect(checks.map(({ remaining }) => remaining)).toEqual([0, 0, 0]);
  await limiter.settle(reservation!.id, { t: 40 });
  const after = await limiter.peek({ org: "small" }, { cost: 0 });
  expect(after.checks.map(({ limit, remaining }) => limit - remaining)).toEqual([40, 40, 40]);
});

const unitRules = (["token-bucket", "gcra", "fixed-window", "sliding-counter", "rolling-window"] as const).map(
  (algorithm) => ({ ...tokens, algorithm, window: "1s", estimate: { default: 10, ttl: "1h" } }) as Rule,
);

test.each([...unitRules, { ...unitRules.at(-1)!, storage: "sorted-set" } as Rule])(
  "what a reservation charges after an edit is charged by the new numbers: nothing that they count is lost ($algorithm $storage)",
  async (before) => {
    for (const step of ["settle", "extend"] as const) {
      const clock = virtualClock();
      const limiter = createLimiter({ clock, rules: [before] });
      const { reservation } = await limiter.check({ org: "a" });
      limiter.setRules([{ ...before, window: "1d" } as Rule]);
      await limiter.charge({ org: "a", t: 800 });
      clock.advance("5s");
      expect(await remainingOf(limiter)).toBe(190);
      await limiter[step](reservation!.id, { t: 11 });
      expect([step, await remainingOf(limiter)]).toEqual([step, 189]);
      clock.advance("5s");
      expect([step, await remainingOf(limiter)]).toEqual([step, 189]);
    }
  },
);

test("an extension is decided by the new limit: of the rule, of the override and of the variant that its key has", async () => {
  const rule: Rule = {
    ...tokens,
    match: { tier: "*" },
    estimate: { default: 10, overrun: "stop" },
    variants: [{ name: "only", weight: 1, window: "2h" }],
    overrides: [
      { match: { org: "small" }, limit: 50 },
      { match: { tier: "gold" }, limit: 5_000 },
    ],
  } as Rule;
  const edited = {
    ...rule,
    limit: 100,
    overrides: [{ match: { org: "small" }, limit: 20 }, rule.overrides![1]!],
  } as Rule;
  const limitAfter = async (rules: Rule[], org: string, tier: string): Promise<number | undefined> => {
    const limiter = createLimiter({ clock: virtualClock(), rules: [rule] });
    const { reservation } = await limiter.check({ org, tier });
    limiter.setRules(rules);
    return (await limiter.extend(reservation!.id, { t: 11 })).limit;
  };
  const long = "x".repeat(200);
  for (const [org, tier, limit] of [
    ["a", "free", 100],
    ["small", "free", 20],
    ["a", "gold", 5_000],
    // The key is a digest, which does not show which override it has.
    [long, "free", 1_000],
  ] as const)
    expect([org, tier, await limitAfter([edited], org, tier)]).toEqual([org, tier, limit]);
  for (const rules of [[rule], [], [{ ...rule, mode: "off" } as Rule], [{ ...rule, algorithm: "gcra" } as Rule]])
    expect(await limitAfter(rules, "a", "free")).toBe(1_000);
});
