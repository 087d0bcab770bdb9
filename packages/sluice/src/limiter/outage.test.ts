import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SluiceError } from "../errors.js";
import { Outage } from "./outage.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function outageOf(store: { whyNotReady: Error | undefined }) {
  const causes: unknown[] = [];
  const events: string[] = [];
  const outage = new Outage({
    store: { ready: async () => store.whyNotReady === undefined, whyNotReady: store.whyNotReady },
    degraded: (cause) => {
      causes.push(cause);
      events.push("degraded");
    },
    recovered: () => events.push("recovered"),
  });
  return { outage, causes, events };
}
const silence = new SluiceError("store-unavailable", "no answer within 200 ms");

test("a failure without a cause is reported as it is if the store is ready again by then", async () => {
  const { outage, causes } = outageOf({ whyNotReady: undefined });
  outage.failed(silence);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(causes).toEqual([silence]);
});

test("a failure without a cause is reported with the cause that a probe finds", async () => {
  const why = new Error("LOADING");
  const { outage, causes } = outageOf({ whyNotReady: why });
  outage.failed(silence);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(causes).toEqual([why]);
});

test("a check decided while the cause was looked up ends the outage, even if none follows", async () => {
  const { outage, events } = outageOf({ whyNotReady: undefined });
  outage.failed(silence);
  outage.decided();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(events).toEqual(["degraded"]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(events).toEqual(["degraded", "recovered"]);
});

test("a failure after the last decision keeps the outage on", async () => {
  const { outage, events } = outageOf({ whyNotReady: undefined });
  outage.failed(silence);
  outage.decided();
  outage.failed(silence);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(events).toEqual(["degraded"]);
});

test("without traffic, a store that answers a probe ends the outage after half a minute, once", async () => {
  const { outage, events } = outageOf({ whyNotReady: undefined });
  outage.failed(silence);
  await vi.advanceTimersByTimeAsync(25_000);
  expect(events).toEqual(["degraded"]);
  await vi.advanceTimersByTimeAsync(120_000);
  expect([events, outage.isOn]).toEqual([["degraded", "recovered"], false]);
});

test("without traffic, a store that answers no probe counts as away until it does", async () => {
  const store: { whyNotReady: Error | undefined } = { whyNotReady: new Error("gone") };
  const { outage, events } = outageOf(store);
  outage.failed(silence);
  await vi.advanceTimersByTimeAsync(300_000);
  expect(events).toEqual(["degraded"]);
  store.whyNotReady = undefined;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(events).toEqual(["degraded", "recovered"]);
});

test("checks that keep failing keep the outage on, whatever probes find", async () => {
  const { outage, events } = outageOf({ whyNotReady: undefined });
  for (let i = 0; i < 100; i++) {
    outage.failed(silence);
    await vi.advanceTimersByTimeAsync(10_000);
  }
  expect(events).toEqual(["degraded"]);
});

test("a check that fails after close is not reported, and leaves no timer", async () => {
  for (const cause of [silence, new Error("LOADING")]) {
    const { outage, causes } = outageOf({ whyNotReady: undefined });
    outage.close();
    outage.failed(cause);
    expect(vi.getTimerCount()).toBe(0);
    expect(causes).toEqual([]);
  }
  const { outage, causes } = outageOf({ whyNotReady: undefined });
  outage.failed(silence);
  outage.close();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(vi.getTimerCount()).toBe(0);
  expect(causes).toEqual([]);
});
