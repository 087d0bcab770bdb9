import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Reserved } from "../store/reserved.js";
import { OpenReservations } from "./open-reservations.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const reserved: Reserved = { ttlMs: 2_000, counters: [] };

test("one that another instance settled while this one was cut off is not reported as expired", async () => {
  const answers: (() => Promise<boolean>)[] = [
    () => Promise.reject(new Error("away")),
    () => Promise.reject(new Error("away")),
    async () => false,
  ];
  let asked = 0;
  const expired: string[] = [];
  const open = new OpenReservations({
    hasExpired: () => answers[asked++]!(),
    onExpired: (id) => expired.push(id),
  });
  open.add({ id: "a", reserved, held: {} });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toBe(3);
  expect(expired).toEqual([]);
  // Nothing is left to look for.
  expect(vi.getTimerCount()).toBe(0);
});

test("if the store stays away for longer than it would remember, the reservation is assumed to be expired, once", async () => {
  const expired: string[] = [];
  const open = new OpenReservations({
    hasExpired: () => Promise.reject(new Error("away")),
    onExpired: (id) => expired.push(id),
  });
  open.add({ id: "a", reserved, held: {} });
  await vi.advanceTimersByTimeAsync(50_000);
  expect(expired).toEqual([]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(expired).toEqual(["a"]);
  expect(vi.getTimerCount()).toBe(0);
});
