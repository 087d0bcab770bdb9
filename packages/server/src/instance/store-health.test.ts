import { EventEmitter } from "node:events";
import type { Limiter } from "sluice";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLog } from "../log.js";
import { StoreHealth } from "./store-health.js";

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A limiter whose store answers probes or not; the test emits its events. */
function watched() {
  const events = new EventEmitter();
  const store = { answers: true, lateProbes: 0 };
  const limiter = Object.assign(events, {
    ready: async () => {
      return store.answers && --store.lateProbes < 0;
    },
    whyNotReady: new Error("connect ECONNREFUSED"),
  });
  const health = new StoreHealth({ limiter: limiter as unknown as Limiter, log: createLog("silent") });
  const decide = (count: number, degraded?: string): void => {
    for (let i = 0; i < count; i++) events.emit("decision", { degraded });
  };
  return { events, store, health, decide };
}
const late = new Error("Redis: no answer within 50 ms");

test("one late answer among many is a partial outage, not a failing store", async () => {
  const { events, health, decide } = watched();
  events.emit("degraded", late);
  await vi.advanceTimersByTimeAsync(0);
  expect(health.view()).toMatchObject({ sinceMs: 0, partial: true });
  for (let second = 0; second < 4; second++) {
    decide(30);
    decide(1, "local");
    await vi.advanceTimersByTimeAsync(1_000);
    expect([health.state, health.failingSinceMs, health.view()!.partial]).toEqual(["degraded", undefined, true]);
  }
  events.emit("recovered");
  expect([health.view(), events.listenerCount("decision")]).toEqual([undefined, 0]);
  health.close();
});

test("a store that answers no probe counts as failing from the start of the outage, with or without traffic", async () => {
  const { events, store, health } = watched();
  store.answers = false;
  events.emit("degraded", late);
  await vi.advanceTimersByTimeAsync(4_000);
  expect([health.failingSinceMs, health.view()]).toEqual([
    0,
    { sinceMs: 0, partial: false, cause: expect.stringContaining("nothing listens") },
  ]);
  store.answers = true;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(health.view()!.partial).toBe(true);
  health.close();
});

test("a store that refuses writes counts as failing, although it answers every probe and checks are rare", async () => {
  const { events, health, decide } = watched();
  events.emit("degraded", new Error("READONLY You can't write against a read only replica."));
  for (let second = 0; second < 6; second++) {
    if (second % 3 === 0) decide(1, "local");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(health.failingSinceMs).toBe(0);
  }
  decide(9);
  decide(1, "local");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(health.failingSinceMs).toBeUndefined();
  health.close();
});

test("without traffic, one late probe is no outage; two in a row are", async () => {
  const { store, health } = watched();
  store.lateProbes = 1;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(health.state).toBe("up");
  store.lateProbes = 2;
  await vi.advanceTimersByTimeAsync(5_000);
  expect([health.state, health.failingSinceMs]).toEqual(["degraded", 10_000]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(health.state).toBe("up");
  health.close();
});
