import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { RedisCalls } from "./calls.js";
import { FreedKeys } from "./freed-keys.js";

const SERVER_MS = 1_000_000;
/** The arguments of each call. */
let sent: (string | number)[][];
/** The answer to a read: the server's time and the keys. */
let listed: () => unknown[];
let forgotten: (readonly string[] | undefined)[];

const calls = {
  run: async (_: string, __: string[], args: (string | number)[]) => {
    sent.push(args);
    return listed();
  },
} as unknown as RedisCalls;
const freedKeys = (): FreedKeys => new FreedKeys(calls, (keys) => void forgotten.push(keys));
const settle = (): Promise<void> => vi.advanceTimersByTimeAsync(0).then(() => {});
/** A first read, which forgets everything before it. */
async function heardAt(freed: FreedKeys, atMs: number): Promise<void> {
  freed.heardUntilMonotonicMs(atMs);
  await settle();
  forgotten = [];
}

beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
  listed = () => [SERVER_MS];
  forgotten = [];
});
afterEach(() => void vi.useRealTimers());

test("keys of one moment are noted in one call, each once; too many count as all", async () => {
  const freed = freedKeys();
  freed.note(["a", "b"]);
  freed.note(["b", "c"]);
  await vi.advanceTimersByTimeAsync(50);
  expect(sent.map(([, ...keys]) => keys)).toEqual([["a", "b", "c"]]);
  freed.note(Array.from({ length: 300 }, (_, i) => `k${i}`));
  await vi.advanceTimersByTimeAsync(50);
  expect(sent[1]!.slice(1)).toEqual(["*"]);
});

test("a note that failed is sent again, with what came meanwhile", async () => {
  const freed = freedKeys();
  listed = () => {
    throw new Error("away");
  };
  freed.note(["a"]);
  await vi.advanceTimersByTimeAsync(50);
  listed = () => [SERVER_MS];
  freed.note(["b"]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(sent.map(([, ...keys]) => keys)).toEqual([["a"], ["a", "b"]]);
});

test("reads at most twice a second, and only while someone asks; freed keys are reported", async () => {
  const freed = freedKeys();
  await heardAt(freed, 10_000);
  expect(freed.heardUntilMonotonicMs(10_400)).toBe(10_000);
  listed = () => [SERVER_MS + 500, "a", "b"];
  expect(freed.heardUntilMonotonicMs(10_500)).toBe(10_000);
  expect(freed.heardUntilMonotonicMs(10_501)).toBe(10_000);
  await settle();
  expect(freed.heardUntilMonotonicMs(10_600)).toBe(10_500);
  expect(forgotten).toEqual([["a", "b"]]);
  // From some time before the last read on.
  expect(sent).toEqual([[-2_000], [SERVER_MS - 2_000]]);
});

test.each([
  ["nobody asked for longer than keys are kept", 20_000, [SERVER_MS + 10_000]],
  ["the server's clock went back", 11_000, [SERVER_MS - 1]],
  ["so many were freed that they were not listed", 11_000, [SERVER_MS + 1_000, "*"]],
])("everything is forgotten if %s", async (_, atMs, answer) => {
  const freed = freedKeys();
  await heardAt(freed, 10_000);
  listed = () => answer;
  freed.heardUntilMonotonicMs(atMs);
  await settle();
  expect(forgotten).toEqual([undefined]);
});

test("a read that fails leaves what is known unchanged", async () => {
  const freed = freedKeys();
  await heardAt(freed, 10_000);
  listed = () => {
    throw new Error("away");
  };
  freed.heardUntilMonotonicMs(11_000);
  await settle();
  expect(freed.heardUntilMonotonicMs(11_001)).toBe(10_000);
  expect(forgotten).toEqual([]);
});
