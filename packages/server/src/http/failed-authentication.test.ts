import { afterEach, expect, test, vi } from "vitest";
import {
  type AttemptSum,
  FailedAuthentication,
  FREE_FAILURES,
  LONGEST_HOLD_MS,
  MOST_LISTED,
  PACE_MS,
} from "./failed-authentication.js";

afterEach(() => void vi.useRealTimers());

function make() {
  const counted: string[] = [];
  const logged: string[] = [];
  const audited: AttemptSum[] = [];
  const failures = new FailedAuthentication({
    log: { warn: (message, fields) => void logged.push(`${message} ${JSON.stringify(fields)}`) },
    count: ({ plane, credential }) => void counted.push(`${plane} ${credential}`),
    audit: async (sum) => void audited.push(sum),
  });
  const guess = (address: string) => failures.note({ address, plane: "admin", credential: "bearer" });
  return { failures, guess, counted, logged, audited };
}

test("the first failures are answered at once; after them each answer is delayed, but not those of other addresses", async () => {
  vi.useFakeTimers();
  const { guess, failures } = make();
  for (let i = 0; i < FREE_FAILURES; i++) expect(await guess("192.0.2.1")).toBeUndefined();
  const slowed = guess("192.0.2.1");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await slowed).toEqual({ waitSeconds: 60, isHeld: true });
  expect(await guess("192.0.2.2")).toBeUndefined();
  await failures.close();
});

test("parallel guesses from one address get answers no faster, and do not use up the capacity for other addresses", async () => {
  vi.useFakeTimers();
  const { guess, failures } = make();
  let answered = 0;
  let unheld = 0;
  for (let i = 0; i < 5_000; i++) {
    void guess("192.0.2.1").then((slowed) => {
      if (slowed === undefined || slowed.isHeld) answered++;
      else unheld++;
    });
  }
  await vi.advanceTimersByTimeAsync(0);
  const heldAtOnce = (LONGEST_HOLD_MS - 1_000) / PACE_MS + 1;
  expect([answered, unheld]).toEqual([FREE_FAILURES, 5_000 - FREE_FAILURES - heldAtOnce]);
  for (let i = 0; i < FREE_FAILURES; i++) await guess("192.0.2.2");
  const other = guess("192.0.2.2");
  for (let second = 1; second <= 10; second++) {
    const before = answered;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(answered - before).toBeLessThanOrEqual(1_000 / PACE_MS);
  }
  expect(await other).toMatchObject({ isHeld: true });
  expect(answered).toBe(FREE_FAILURES + heldAtOnce);
  await failures.close();
});

test("a flood from one address is counted each time, but makes one audit entry and two log lines", async () => {
  const { guess, failures, counted, logged, audited } = make();
  for (let i = 0; i < 5_000; i++) void guess("192.0.2.1");
  await failures.close();
  expect(counted).toHaveLength(5_000);
  expect(audited).toEqual([{ address: "192.0.2.1", addresses: 1, failures: 5_000 }]);
  expect(logged).toHaveLength(2);
});

test("a flood from many addresses makes a bounded number of entries with the full total, the busiest addresses by name", async () => {
  const { guess, failures, logged, audited } = make();
  const addresses = Array.from(
    { length: 30_000 },
    (_, i) => `2001:db8:${(i >> 8).toString(16)}:${(i & 255).toString(16)}::`,
  );
  for (let i = 0; i < 9; i++) await guess("192.0.2.1");
  for (const address of addresses) await guess(address);
  for (let i = 0; i < 9; i++) await guess("192.0.2.1");
  await failures.close();
  expect(audited).toHaveLength(MOST_LISTED + 1);
  expect(audited[0]).toMatchObject({ address: "192.0.2.1", failures: 9 });
  expect(audited.at(-1)!.address).toBeUndefined();
  expect(audited.reduce((sum, one) => sum + one.failures, 0)).toBe(30_018);
  expect(logged.length).toBeLessThanOrEqual(MOST_LISTED + 1);
});

test("at the end of the minute the address is free again, and its total is reported without further requests", async () => {
  vi.useFakeTimers();
  const { guess, audited } = make();
  const guesses = Array.from({ length: FREE_FAILURES + 5 }, () => guess("192.0.2.1"));
  await vi.advanceTimersByTimeAsync(2_000);
  expect((await Promise.all(guesses)).filter((slowed) => slowed?.isHeld)).toHaveLength(5);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(audited).toEqual([{ address: "192.0.2.1", addresses: 1, failures: FREE_FAILURES + 5 }]);
  expect(await guess("192.0.2.1")).toBeUndefined();
});

test("a failed audit write is logged, and the other entries are still written", async () => {
  const logged: string[] = [];
  const audited: AttemptSum[] = [];
  const failures = new FailedAuthentication({
    log: { warn: (message) => void logged.push(message) },
    count: () => undefined,
    audit: async (sum) => {
      if (sum.address === "192.0.2.1") throw new Error("down");
      audited.push(sum);
    },
  });
  for (const address of ["192.0.2.1", "192.0.2.2"])
    await failures.note({ address, plane: "data", credential: "bearer" });
  await failures.close();
  expect(audited).toHaveLength(1);
  expect(logged).toContain("failed authentication could not be recorded");
});
