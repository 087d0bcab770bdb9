import { expect, test, vi } from "vitest";
import { SluiceError } from "../errors.js";
import type { Rule } from "../rules/rule.js";
import { memoryStore } from "../store/memory/memory-store.js";
import type { Store } from "../store/store.js";
import { virtualClock } from "../testing.js";
import { createLimiter } from "./limiter.js";

const rule: Rule = { id: "r", key: ["user"], algorithm: "token-bucket", limit: 10, window: "1m" };

test("a decision's JSON is that of the contract, in its order", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [{ ...rule, limit: 1 }] });
  await limiter.check({ user: "ann" });
  expect(JSON.stringify(await limiter.check({ user: "ann" }))).toBe(
    '{"allowed":false,"rule":"r","limit":1,"remaining":0,"retryAfterMs":60000,"resetAfterMs":60000,"delayMs":0,"reason":"limit","violated":["r"],' +
      '"rulesVersion":1,"guarantee":"atomic","checks":[{"rule":"r","mode":"enforce","allowed":false,"limit":1,"remaining":0,' +
      '"retryAfterMs":60000,"resetAfterMs":60000,"reason":"limit"}]}',
  );
});

test("if no rule matches, the request passes, and no rule is reported", async () => {
  const decision = await createLimiter({ rules: [] }).check({ user: "ann" });
  expect(decision).toMatchObject({ allowed: true, violated: [], checks: [], retryAfterMs: 0 });
  expect("rule" in decision).toBe(false);
});

test.each([
  [Number.NaN, "cost: expected a whole number of at least 0, got NaN"],
  [Number.POSITIVE_INFINITY, "cost: expected a whole number of at least 0, got Infinity"],
  [-1, "cost: expected a whole number of at least 0, got -1"],
  [0.5, "cost: expected a whole number of at least 0, got 0.5"],
  ["3" as unknown as number, 'cost: expected a whole number of at least 0, got "3"'],
])("a cost of %s is refused with a clear error, and charges nothing", async (cost, message) => {
  const limiter = createLimiter({ rules: [rule] });
  await expect(limiter.check({ user: "ann" }, { cost })).rejects.toMatchObject({ code: "invalid-request", message });
  expect((await limiter.peek({ user: "ann" }, { cost: 0 })).remaining).toBe(10);
});

test.each([
  [{ user: { name: "ann" } }, /^attributes\.user: expected/],
  [{ user: Number.NaN }, /^attributes\.user: expected/],
  [null, /^attributes: expected an object/],
])("attributes that are not values are refused: %j", async (attributes, message) => {
  const limiter = createLimiter({ rules: [rule] });
  const error = await limiter.check(attributes as never).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: "invalid-request" });
  expect(String((error as Error).message)).toMatch(message);
});

test("a request id must be a string of a bounded length", async () => {
  const limiter = createLimiter({ rules: [rule] });
  for (const id of ["", "x".repeat(2_000), 7 as unknown as string]) {
    await expect(limiter.check({ user: "ann" }, { id })).rejects.toMatchObject({ code: "invalid-request" });
  }
});

test("bad rules throw with every mistake, and the rules in force stay", () => {
  const limiter = createLimiter({ rules: [rule] });
  const bad = [
    { ...rule, limit: -1 },
    { ...rule, id: "Bad Id" },
  ] as Rule[];
  expect(() => limiter.setRules(bad)).toThrow(/rules\[0\]\.limit:[\s\S]*rules\[1\]\.id:/);
  expect(limiter.rules).toEqual([rule]);
  expect(limiter.rulesVersion).toBe(1);
});

test("a listener that throws causes a warning and no harm", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const limiter = createLimiter({ rules: [rule] });
  limiter.on("decision", () => {
    throw new Error("listener");
  });
  expect((await limiter.check({ user: "ann" })).allowed).toBe(true);
  expect(warn).toHaveBeenCalledOnce();
  warn.mockRestore();
});

test("`await using` releases a lease at the end of the block", async () => {
  const limiter = createLimiter({ rules: [{ id: "r", key: [], algorithm: "concurrency", limit: 1 }] });
  {
    const decision = await limiter.check({});
    await using lease = decision.lease!;
    expect(lease.id).toBeTruthy();
    expect((await limiter.check({})).allowed).toBe(false);
  }
  expect((await limiter.check({})).allowed).toBe(true);
});

test("a lease that expires without renewal signals its loss; a released one does not", async () => {
  const limiter = createLimiter({ rules: [{ id: "r", key: [], algorithm: "concurrency", limit: 2, ttl: "40ms" }] });
  const [lost, kept] = [(await limiter.check({})).lease!, (await limiter.check({})).lease!];
  const { signal } = lost;
  const untouched = kept.signal;
  await kept.release();
  // On a busy machine the term may already be over.
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  expect(String(signal.reason)).toContain("the lease was lost");
  expect(await lost.renew()).toBe(false);
  expect(untouched.aborted).toBe(false);
});

test("a renewed lease does not signal its loss at its first expiry", async () => {
  const limiter = createLimiter({ rules: [{ id: "r", key: [], algorithm: "concurrency", limit: 1, ttl: "1500ms" }] });
  const lease = (await limiter.check({})).lease!;
  const { signal } = lease;
  for (let i = 0; i < 4; i++) {
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(await lease.renew()).toBe(true);
  }
  expect(signal.aborted).toBe(false);
  expect(await lease.release()).toBe(true);
});

test("a repeated request id whose lease has expired gets it as lost, with no term left", async () => {
  const clock = virtualClock();
  const limiter = createLimiter({
    clock,
    rules: [{ id: "r", key: [], algorithm: "concurrency", limit: 1, ttl: "30s" }],
  });
  expect((await limiter.check({}, { id: "same" })).lease).toMatchObject({ expiresAfterMs: 30_000 });
  clock.advance("10s");
  expect((await limiter.check({}, { id: "same" })).lease).toMatchObject({ expiresAfterMs: 20_000 });
  clock.advance("21s");
  const { allowed, lease } = await limiter.check({}, { id: "same" });
  expect([allowed, lease!.expiresAfterMs, lease!.signal.aborted]).toEqual([true, 0, true]);
  expect((await limiter.check({})).allowed).toBe(true);
});

test.each([
  "",
  "x",
  "a.s.",
  `a.s.${Buffer.from('[["{x}:r:z",1,1]]').toString("base64url")}`,
  `a.s.${Buffer.from('[["foreign",1,1]]').toString("base64url")}`,
])("a forged lease id is refused, and reaches no key: %j", async (id) => {
  const limiter = createLimiter({ rules: [rule] });
  await expect(limiter.release(id)).rejects.toMatchObject({ code: "invalid-request" });
});

test("a forged lease id cannot cause unbounded work in the store", async () => {
  const limiter = createLimiter({ rules: [rule] });
  const forged = (places: number, ttlMs: number): string =>
    `x.s.${Buffer.from(JSON.stringify([["{*}:c:c", places, ttlMs]])).toString("base64url")}`;
  await expect(limiter.release(forged(1_000_000, 1))).rejects.toMatchObject({ code: "invalid-request" });
  await expect(limiter.renew(forged(1, 1e15))).rejects.toMatchObject({ code: "invalid-request" });
  expect(await limiter.release(forged(1_000, 1_000))).toBe(false);
});

test("a lease of a repeated request id signals its loss when the place ends, not a term later", async () => {
  const limiter = createLimiter({ rules: [{ id: "r", key: [], algorithm: "concurrency", limit: 1, ttl: "2s" }] });
  await limiter.check({}, { id: "same" });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const { signal } = (await limiter.check({}, { id: "same" })).lease!;
  const lost = new Promise((resolve) => signal.addEventListener("abort", () => resolve("lost"), { once: true }));
  // Timers of one process fire in order, however late the machine runs them.
  const termLater = new Promise((resolve) => setTimeout(resolve, 1_900, "a term later"));
  expect(await Promise.race([lost, termLater])).toBe("lost");
});

test("a peek is not a decision: listeners do not see it", async () => {
  const limiter = createLimiter({ rules: [rule] });
  let heard = 0;
  limiter.on("decision", () => heard++);
  await limiter.peek({ user: "ann" });
  await limiter.explain({ user: "ann" });
  await limiter.check({ user: "ann" });
  expect(heard).toBe(1);
});

test("several attribute sets are one decision: all pass and are charged, or none is", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [{ ...rule, limit: 3 }] });
  const { decision, parts } = await limiter.checkAll([
    { attributes: { user: "ann" }, cost: 2 },
    { attributes: { user: "bob" } },
    { attributes: {} },
  ]);
  expect(decision.allowed).toBe(true);
  expect(parts.map((results) => results.map(({ remaining }) => remaining))).toEqual([[1], [2], []]);
  const refused = await limiter.checkAll([{ attributes: { user: "bob" } }, { attributes: { user: "ann" }, cost: 2 }]);
  expect(refused.decision.allowed).toBe(false);
  expect((await limiter.peek({ user: "bob" }, { cost: 0 })).remaining).toBe(2);
});

test("two sets that lead to one counter are decided together", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [{ ...rule, limit: 3 }] });
  const twice = [
    { attributes: { user: "ann" }, cost: 2 },
    { attributes: { user: "ann" }, cost: 2 },
  ];
  expect((await limiter.checkAll(twice)).decision).toMatchObject({ allowed: false, reason: "cost-exceeds-limit" });
  expect((await limiter.checkAll(twice.map((part) => ({ ...part, cost: 1 })))).decision).toMatchObject({
    allowed: true,
    remaining: 1,
  });
});

test("explain reports which rules applied and why, the stored state, and when the request could pass", async () => {
  const limiter = createLimiter({
    clock: virtualClock(Date.UTC(2026, 0, 1)),
    rules: [
      { ...rule, limit: 1 },
      { ...rule, id: "pro", match: { tier: "pro" } },
    ],
  });
  await limiter.check({ user: "ann", tier: "free" });
  const { decision, rules } = await limiter.explain({ user: "ann", tier: "free" });
  expect(decision.allowed).toBe(false);
  const { lease: _lease, ...fields } = { ...decision };
  expect(await limiter.explain({ user: "ann", tier: "free" })).toMatchObject({ ...fields, rule: "r", reason: "limit" });
  expect(rules).toMatchObject([
    { rule: "r", matched: true, state: { missing: 1 }, nextAllowedAt: "2026-01-01T00:01:00.000Z" },
    { rule: "pro", matched: false, why: expect.stringContaining("tier") },
  ]);
});

test("explain names no time for a request that no wait lets pass", async () => {
  const limiter = createLimiter({
    clock: virtualClock(Date.UTC(2026, 0, 1)),
    rules: [
      { ...rule, id: "deny-list", limit: 0 },
      { ...rule, id: "small", limit: 2 },
      { ...rule, id: "monthly", limit: 3, window: "31d" },
    ],
  });
  await limiter.charge({ user: "ann" }, { cost: 3 });
  const { rules } = await limiter.explain({ user: "ann" }, { cost: 3 });
  expect(rules.map(({ rule: id, nextAllowedAt }) => [id, nextAllowedAt])).toEqual([
    ["deny-list", undefined],
    ["small", undefined],
    ["monthly", "2026-02-01T00:00:00.000Z"],
  ]);
});

test("a wrong field in a rule literal does not compile", () => {
  const rules: Rule[] = [
    // @ts-expect-error: a token bucket has no minimum interval.
    { id: "r", key: [], algorithm: "token-bucket", limit: 1, window: "1s", minInterval: "1ms" },
    // @ts-expect-error: the field is spelled window.
    { id: "r", key: [], algorithm: "fixed-window", limit: 1, windw: "1s" },
    // @ts-expect-error: there is no such algorithm.
    { id: "r", key: [], algorithm: "leaky-bucket", limit: 1, window: "1s" },
    // @ts-expect-error: a fixed window needs its window.
    { id: "r", key: [], algorithm: "fixed-window", limit: 1 },
  ];
  expect(rules).toHaveLength(4);
});

test.each([
  [undefined, "createLimiter: expected { rules, store? }"],
  [
    { rules: [], stor: 1 },
    "stor: unknown option; known are rules, store, globalStore, region, rulesVersion, clock, instances",
  ],
  [
    { rules: [], store: "redis://127.0.0.1:6379" },
    'store: expected a store such as redisStore("redis://127.0.0.1:6379")',
  ],
  [{ rules: [], instances: 0 }, "instances: expected a whole number of at least 1, got 0"],
])("invalid options are refused: %j", (options, message) => {
  expect(() => createLimiter(options as never)).toThrow(message);
});

test("a cost that would write thousands of entries into a sorted set is refused by name; a packed window accepts it", async () => {
  const rule = { id: "r", key: ["user"], algorithm: "rolling-window", limit: 300_000, window: "1h" } as const;
  const sorted = createLimiter({ rules: [{ ...rule, storage: "sorted-set" }] });
  await expect(sorted.check({ user: "u" }, { cost: 200_000 })).rejects.toMatchObject({
    code: "invalid-request",
    message: expect.stringContaining("cost: expected at most 5000 under a rolling window with storage: sorted-set"),
  });
  expect(await sorted.check({ user: "u" }, { cost: 5_000 })).toMatchObject({ allowed: true, remaining: 295_000 });
  expect(await sorted.check({ user: "u" }, { cost: 300_001 })).toMatchObject({ reason: "cost-exceeds-limit" });
  const packed = createLimiter({ rules: [rule] });
  expect(await packed.check({ user: "u" }, { cost: 200_000 })).toMatchObject({ allowed: true, remaining: 100_000 });
});

test("a lease id edited to a longer term renews nothing, and the lease stays", async () => {
  const limiter = createLimiter({ rules: [{ id: "c", key: [], algorithm: "concurrency", limit: 1, ttl: "5s" }] });
  const { lease } = await limiter.check({});
  const [name] = lease!.id.split(".");
  const held = Buffer.from('[["{*}:c:c",1,315360000000]]').toString("base64url");
  expect(await limiter.renew(`${name}.s.${held}`)).toBe(0);
  expect(await limiter.renew(lease!.id)).toBe(5_000);
  expect((await limiter.check({})).allowed).toBe(false);
  await limiter.close();
});

test.each(["token-bucket", "gcra", "fixed-window", "sliding-counter", "rolling-window"] as const)(
  "%s: in the millisecond of a reset, a refund gives back its own charge and no other",
  async (algorithm) => {
    const rule: Rule = { id: "r", key: [], algorithm, limit: 10, window: "1h" };
    const limiter = createLimiter({ clock: virtualClock(), rules: [rule] });
    const first = await limiter.check({}, { cost: 5 });
    await limiter.reset("r", {});
    const second = await limiter.check({}, { cost: 5 });
    await limiter.refund(first);
    expect((await limiter.peek({}, { cost: 0 })).remaining).toBe(5);
    await limiter.refund(second);
    expect((await limiter.peek({}, { cost: 0 })).remaining).toBe(10);
    await limiter.close();
  },
);

test("a decision is refunded once, by any limiter of the store", async () => {
  const store = memoryStore();
  const rules: Rule[] = [{ id: "r", key: [], algorithm: "fixed-window", limit: 10, window: "1h" }];
  const [one, other] = [createLimiter({ store, rules }), createLimiter({ store, rules })];
  const decision = await one.check({}, { cost: 2 });
  await one.check({}, { cost: 3 });
  expect([await other.refund(decision), await one.refund(decision)]).toEqual([true, false]);
  expect((await one.peek({}, { cost: 0 })).remaining).toBe(7);
  await one.close();
  await other.close();
});

test("a decision of the policy local is refunded where it was charged, whichever limiter is called", async () => {
  const decide = () => Promise.reject(new SluiceError("store-unavailable", "gone"));
  const store = Object.assign<Store, Pick<Store, "decide">>(memoryStore(), { decide });
  const rules: Rule[] = [{ id: "r", key: [], algorithm: "fixed-window", limit: 10, window: "1h" }];
  const [one, other] = [createLimiter({ store, rules }), createLimiter({ store, rules })];
  const decision = await one.check({}, { cost: 2 });
  await other.check({}, { cost: 5 });
  expect([decision.degraded, await other.refund(decision), await one.refund(decision)]).toEqual(["local", true, false]);
  const left = [one, other].map(async (limiter) => (await limiter.peek({}, { cost: 0 })).remaining);
  expect(await Promise.all(left)).toEqual([10, 5]);
  await one.close();
  await other.close();
});

test.each(["concurrency rules", "rules with an estimate"])(
  "what 64 %s hold can be ended by its id, whatever their keys; with more, the request is refused before anything is charged",
  async (kind) => {
    const isLease = kind === "concurrency rules";
    const rulesOf = (count: number): Rule[] =>
      Array.from({ length: count }, (_, i) => {
        const rule = { id: `${"r".repeat(60)}${i}`, key: ["user", "team"], colocate: "team", limit: 5 };
        return (
          isLease
            ? { ...rule, algorithm: "concurrency", ttl: "1m" }
            : {
                ...rule,
                algorithm: "fixed-window",
                window: "1h",
                cost: { attribute: "n" },
                estimate: { default: 1, ttl: "1m" },
              }
        ) as Rule;
      });
    const attributes = { user: "字".repeat(40), team: "漢".repeat(100) };
    const limiter = createLimiter({ rules: rulesOf(64) });
    const { lease, reservation } = await limiter.check(attributes);
    expect(isLease ? await lease!.release() : (await limiter.cancel(reservation!.id)).settled).toBe(true);
    expect((await limiter.peek(attributes, { cost: 0 })).remaining).toBe(5);
    limiter.setRules(rulesOf(65));
    await expect(limiter.check(attributes)).rejects.toMatchObject({
      code: "too-complex",
      message: `rules: expected at most 64 ${kind} that apply to one request, got 65`,
    });
    await limiter.close();
  },
);
