import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { readCounterKey } from "../keys.js";
import type { Rule } from "../rules/rule.js";
import { MemoryStore } from "../store/memory/memory-store.js";
import type { Store, StoreReply, StoreRequest } from "../store/store.js";
import { virtualClock } from "../testing.js";
import { createLimiter } from "./limiter.js";

const rule: Rule = { id: "r", key: [], algorithm: "gcra", limit: 1, window: "1s", maxWait: "1m" };

/** Whether a promise is settled once everything due has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = (): void => {
    settled = true;
  };
  promise.then(note, note);
  await sleep(20);
  return settled;
}

test("acquire resolves when the turn has come, and not before", async () => {
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [rule] });
  expect((await limiter.acquire({})).delayMs).toBe(0);
  const turn = limiter.acquire({});
  expect(await isSettled(turn)).toBe(false);
  clock.advance(999);
  expect(await isSettled(turn)).toBe(false);
  expect([...limiter.waitingStats()]).toEqual([["r", 1]]);
  clock.advance(1);
  expect((await turn).allowed).toBe(true);
  expect(limiter.waitingStats().size).toBe(0);
});

test("acquire resolves at once for a refusal", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [{ ...rule, maxWait: "500ms" } as Rule] });
  await limiter.acquire({});
  expect(await limiter.acquire({})).toMatchObject({ allowed: false, reason: "limit", retryAfterMs: 500 });
});

test("an aborted wait gives its turn back, and rejects with the signal's reason", async () => {
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [rule] });
  await limiter.acquire({});
  const controller = new AbortController();
  const turn = limiter.acquire({}, { signal: controller.signal });
  await isSettled(turn);
  controller.abort(new Error("left"));
  await expect(turn).rejects.toThrow("left");
  expect((await limiter.check({})).delayMs).toBe(1_000);
  await expect(limiter.acquire({}, { signal: controller.signal })).rejects.toThrow("left");
  expect((await limiter.check({})).delayMs).toBe(2_000);
});

test("an aborted wait also gives its place back, and a place is held while its request waits", async () => {
  const clock = virtualClock();
  const places: Rule = { id: "places", key: [], algorithm: "concurrency", limit: 2 };
  const limiter = createLimiter({ clock, rules: [rule, places] });
  const first = await limiter.acquire({});
  const controller = new AbortController();
  const turn = limiter.acquire({}, { signal: controller.signal });
  await isSettled(turn);
  expect(await limiter.peek({})).toMatchObject({ allowed: false, reason: "concurrency" });
  controller.abort();
  await expect(turn).rejects.toThrow();
  expect((await limiter.peek({})).allowed).toBe(true);
  await first.lease!.release();
});

test("requests that wait for a turn are not in flight: they cause no shedding", async () => {
  const clock = virtualClock();
  const shedding: Rule = { id: "keep-serving", key: [], algorithm: "load-shedding", signal: "inflight", limit: 10 };
  const paced = { ...rule, match: { path: "/paced" } } as Rule;
  const limiter = createLimiter({ clock, rules: [paced, shedding] });
  const inFlight = (): number => limiter.sheddingStats()[0]!.inFlight;
  await limiter.acquire({ path: "/paced" });
  const callers = Array.from({ length: 40 }, () => new AbortController());
  const turns: Promise<unknown>[] = [];
  for (const { signal } of callers) {
    turns.push(limiter.acquire({ path: "/paced" }, { signal }));
    await sleep(1);
  }
  expect([limiter.waitingStats().get("r"), inFlight()]).toEqual([40, 1]);
  const other = await limiter.acquire({ path: "/other" });
  expect([other.allowed, inFlight()]).toEqual([true, 2]);
  clock.advance(1_000);
  await turns[0];
  expect(inFlight()).toBe(3);
  for (const caller of callers) caller.abort();
  await Promise.allSettled(turns);
  expect(inFlight()).toBe(3);
});

test("beyond maxWaiting nobody waits: the request is refused with its own reason, and takes no turn", async () => {
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [rule], maxWaiting: 2 });
  await limiter.acquire({});
  const turns = [limiter.acquire({}), limiter.acquire({})];
  await isSettled(turns[0]!);
  expect(await limiter.acquire({})).toMatchObject({ allowed: false, reason: "too-many-waiting", retryAfterMs: 3_000 });
  expect((await limiter.check({})).delayMs).toBe(3_000);
  clock.advance("3s");
  await Promise.all(turns);
});

test("a retry by id shares the first attempt's turn: whichever of them leaves, the one that runs is charged", async () => {
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [rule] });
  await limiter.acquire({});
  const [first, second] = [new AbortController(), new AbortController()];
  const attempt = limiter.acquire({}, { id: "x", signal: first.signal });
  await isSettled(attempt);
  const leaver = limiter.acquire({}, { id: "x", signal: second.signal });
  await isSettled(leaver);
  second.abort(new Error("left"));
  await expect(leaver).rejects.toThrow("left");
  // The first attempt still has its turn, in one second.
  expect((await limiter.check({})).delayMs).toBe(2_000);
  const retry = limiter.acquire({}, { id: "x" });
  await isSettled(retry);
  first.abort(new Error("left"));
  await expect(attempt).rejects.toThrow("left");
  // Now others may have it.
  expect((await limiter.check({})).delayMs).toBe(1_000);
  clock.advance("1s");
  expect(await isSettled(retry)).toBe(false);
  clock.advance("2s");
  expect((await retry).allowed).toBe(true);
  expect((await limiter.check({})).delayMs).toBe(1_000);
});

test("beyond maxWaiting a retry by id is refused, and leaves the first attempt its turn", async () => {
  const clock = virtualClock();
  const places: Rule = { id: "places", key: [], algorithm: "concurrency", limit: 5 };
  const limiter = createLimiter({ clock, rules: [rule, places], maxWaiting: 1 });
  await limiter.acquire({});
  const first = limiter.acquire({}, { id: "x" });
  await isSettled(first);
  clock.advance(400);
  const retry = await limiter.acquire({}, { id: "x" });
  expect(retry).toMatchObject({ allowed: false, reason: "too-many-waiting", retryAfterMs: 600, delayMs: 0 });
  expect([retry.lease, await limiter.refund(retry)]).toEqual([undefined, false]);
  expect((await limiter.check({})).delayMs).toBe(1_600);
  clock.advance(600);
  expect(await first).toMatchObject({ allowed: true, lease: expect.anything() });
});

test("a caller that waits less than the rule allows is refused if its turn is further away, and takes none", async () => {
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [rule] });
  await limiter.acquire({});
  expect(await limiter.acquire({}, { maxWaitMs: 600 })).toMatchObject({
    allowed: false,
    reason: "limit",
    retryAfterMs: 400,
  });
  const turn = limiter.acquire({}, { maxWaitMs: 1_000 });
  await isSettled(turn);
  // Others still wait as long behind it, and what they booked is not a clock that was set back.
  expect((await limiter.check({})).delayMs).toBe(2_000);
  expect(await limiter.check({}, { maxWaitMs: 1 })).toMatchObject({ allowed: false, retryAfterMs: 2_999 });
  clock.advance("1s");
  expect((await turn).allowed).toBe(true);
});

test("ten thousand requests wait at once; the next is refused; all get their turns in order", async () => {
  const clock = virtualClock();
  const fast: Rule = { ...rule, limit: 1_000, burst: 1 } as Rule;
  const limiter = createLimiter({ clock, rules: [fast] });
  const turns = Array.from({ length: 10_001 }, () => limiter.acquire({}));
  await isSettled(turns[10_000]!);
  expect(await limiter.acquire({})).toMatchObject({ allowed: false, reason: "too-many-waiting" });
  clock.advance("10s");
  expect((await Promise.all(turns)).map(({ delayMs }) => delayMs)).toEqual(Array.from({ length: 10_001 }, (_, i) => i));
}, 30_000);

test("a limiter that closes ends every wait", async () => {
  const limiter = createLimiter({ clock: virtualClock(), rules: [rule] });
  await limiter.acquire({});
  const turn = limiter.acquire({});
  await isSettled(turn);
  await limiter.close();
  await expect(turn).rejects.toMatchObject({ code: "closed" });
});

test("a turn that the store books after the limiter was closed is not waited for", async () => {
  class SlowStore extends MemoryStore {
    // @ts-expect-error: the memory store answers at once, this one does not.
    override async decide(request: StoreRequest): Promise<StoreReply> {
      await sleep(20);
      return super.decide(request);
    }
  }
  const limiter = createLimiter({ store: new SlowStore() as unknown as Store, rules: [rule] });
  await limiter.acquire({});
  const turn = limiter.acquire({});
  await limiter.close();
  expect(limiter.waitingStats().size).toBe(0);
  await expect(turn).rejects.toMatchObject({ code: "closed" });
});

test.each([-1, 1.5, "many" as unknown as number])("maxWaiting %s is refused", (maxWaiting) => {
  expect(() => createLimiter({ rules: [], maxWaiting })).toThrow("maxWaiting: expected a whole number");
});

test("waiting requests are reported by key: how many, how long, and until the last turn", async () => {
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [{ ...rule, key: ["user"] } as Rule] });
  for (const user of ["ann", "bob"]) await limiter.acquire({ user });
  const ann = limiter.acquire({ user: "ann" });
  await isSettled(ann);
  clock.advance(400);
  const others = [limiter.acquire({ user: "ann" }), limiter.acquire({ user: "bob" })];
  await isSettled(others[1]!);
  expect(limiter.waitingKeys().map(({ key, ...rest }) => ({ ...rest, ...readCounterKey(key) }))).toEqual([
    { rule: "r", attributes: { user: "ann" }, waiting: 2, longestMs: 400, lastTurnMs: 1_600 },
    { rule: "r", attributes: { user: "bob" }, waiting: 1, longestMs: 0, lastTurnMs: 600 },
  ]);
  clock.advance(1_600);
  await Promise.all([ann, ...others]);
  expect(limiter.waitingKeys()).toEqual([]);
});
