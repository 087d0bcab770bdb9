/** Virtual time for stores that are a few milliseconds away: vitest's fake timers, with the monotonic clock among them. */
import { expect, vi } from "vitest";

/** Until `vi.useRealTimers`. */
export function useVirtualTime(): void {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout", "setImmediate", "Date"] });
}

export const passed = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Lets time pass, a millisecond at a time, until something is done; fails if it takes longer. */
export async function within<T>(ms: number, made: Promise<T>): Promise<T> {
  let isDone = false;
  const done = (): void => {
    isDone = true;
  };
  made.then(done, done);
  for (let i = 0; i < ms && !isDone; i++) await vi.advanceTimersByTimeAsync(1);
  expect(isDone).toBe(true);
  return await made;
}
