import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { showProgress } from "./progress.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function terminal(isTTY: boolean): { isTTY: boolean; write(text: string): boolean; written: string[] } {
  const written: string[] = [];
  return { isTTY, written, write: (text) => written.push(text) > 0 };
}

test("work over a second is reported every second on one line, which its end clears", () => {
  const shown = terminal(true);
  const end = showProgress((seconds) => `${seconds} s`, shown);
  vi.advanceTimersByTime(999);
  expect(shown.written).toEqual([]);
  vi.advanceTimersByTime(1_001);
  end();
  vi.advanceTimersByTime(5_000);
  expect(shown.written).toEqual(["\r\u001b[K1 s", "\r\u001b[K2 s", "\r\u001b[K"]);
});

test("a pipe gets no progress", () => {
  const piped = terminal(false);
  const end = showProgress(() => "never", piped);
  vi.advanceTimersByTime(5_000);
  end();
  expect(piped.written).toEqual([]);
});
