import { afterEach, expect, test, vi } from "vitest";
import { MovingSlots, slotIsMoving } from "./moving-slots.js";

afterEach(() => vi.restoreAllMocks());

test("a tag counts as moving for a quarter of a second after it was found so", () => {
  let nowMonotonicMs = 1_000;
  vi.spyOn(performance, "now").mockImplementation(() => nowMonotonicMs);
  const moving = new MovingSlots();
  expect(moving.has("a")).toBe(false);
  moving.add("a");
  expect([moving.has("a"), moving.has("b")]).toEqual([true, false]);
  nowMonotonicMs += 249;
  expect(moving.has("a")).toBe(true);
  nowMonotonicMs += 1;
  expect(moving.has("a")).toBe(false);
});

test("however many tags are found, only a bounded number is kept", () => {
  vi.spyOn(performance, "now").mockReturnValue(1_000);
  const moving = new MovingSlots();
  for (let i = 0; i < 5_000; i++) moving.add(`t${i}`);
  const kept = Array.from({ length: 5_000 }, (_, i) => moving.has(`t${i}`)).filter(Boolean).length;
  expect(kept).toBeGreaterThan(0);
  expect(kept).toBeLessThanOrEqual(1_024);
});

test("Redis and ioredis each have their own wording for a moving slot", () => {
  expect(slotIsMoving(new Error("TRYAGAIN Multiple keys request during rehashing of slot"))).toBe(true);
  expect(slotIsMoving(new Error("Too many Cluster redirections. Last error: ReplyError: ASK"))).toBe(true);
  expect(slotIsMoving(new Error("CLUSTERDOWN Hash slot not served"))).toBe(false);
});
