import { expect, test, vi } from "vitest";
import { type AttemptSum, FailedAuthentication, FREE_FAILURES, MOST_LISTED } from "./failed-authentication.js";

function make() {
  const counted: string[] = [];
  const logged: string[] = [];
  const audited: AttemptSum[] = [];
  const failures = new FailedAuthentication({
    log: { warn: (message, fields) => void logged.push(`${message} ${JSON.stringify(fields)}`) },
    count: ({ plane, credential }) => void counted.push(`${plane} ${credential}`),
    audit: async (sum) => void audited.push(sum),
    holdMs: 1,
  });
  const guess = (address: string) => failures.note({ address, plane: "admin", credential: "bearer" });
  return { failures, guess, counted, logged, audited };
}

test("people may mistype; then each answer waits, and the other addresses' do not", async () => {
  const { guess, failures } = make();
  for (let i = 0; i < FREE_FAILURES; i++) expect(await guess("192.0.2.1")).toBeUndefined();
  const wait = await guess("192.0.2.1");
  expect(wait).toBeGreaterThan(0);
  expect(wait).toBeLessThanOrEqual(60);
  expect(await guess("192.0.2.2")).toBeUndefined();
  await failures.close();
});

test("a flood from one address is counted each time, and is one entry of the audit and two lines of the log", async () => {
  const { guess, failures, counted, logged, audited } = make();
  await Promise.all(Array.from({ length: 5_000 }, () => guess("192.0.2.1")));
  await failures.close();
  expect(counted).toHaveLength(5_000);
  expect(audited).toEqual([{ address: "192.0.2.1", addresses: 1, failures: 5_000 }]);
  expect(logged).toHaveLength(2);
});

test("a flood from many addresses is a bounded number of entries whose sum is whole, the busiest by name", async () => {
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

test("a minute's end frees the address, and its sum is told without anybody asking", async () => {
  vi.useFakeTimers();
  try {
    const { guess, audited } = make();
    const guesses = Array.from({ length: FREE_FAILURES + 5 }, () => guess("192.0.2.1"));
    await vi.advanceTimersByTimeAsync(10);
    expect((await Promise.all(guesses)).filter((wait) => wait !== undefined)).toHaveLength(5);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(audited).toEqual([{ address: "192.0.2.1", addresses: 1, failures: FREE_FAILURES + 5 }]);
    expect(await guess("192.0.2.1")).toBeUndefined();
  } finally {
    vi.useRealTimers();
  }
});

test("an audit that cannot be written is logged, and loses no other entry", async () => {
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
