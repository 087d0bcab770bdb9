import { createLimiter, memoryStore, type Rule, SluiceError } from "sluice";
import { expect, test, vi } from "vitest";
import { reservationMetrics } from "./reservation-metrics.js";

const rule: Rule = {
  id: "tokens",
  key: ["org"],
  algorithm: "fixed-window",
  limit: 10_000,
  window: "1d",
  unit: "tokens",
  cost: { attribute: "t" },
  estimate: { default: 200, ttl: "2s" },
};
const { unit: _, ...bare } = rule;
type Metered = Parameters<typeof reservationMetrics>[0];

/** As in a scrape, without zeros. */
async function scraped(limiter: Metered, metrics = reservationMetrics(limiter)): Promise<Record<string, number>> {
  const read = await Promise.all(metrics.map((metric) => metric.get()));
  const lines = read.flatMap(({ name, values }) =>
    values.map(({ labels, value }): [string, number] => {
      const spelled = Object.entries(labels).map(([label, text]) => `${label}=${text}`);
      return [[name.replace("sluice_reservations_", ""), ...spelled].join(" "), value];
    }),
  );
  return Object.fromEntries(lines.filter(([, value]) => value > 0));
}

test("each kind of unit is summed separately: tokens and money do not add up", async () => {
  const rules: Rule[] = [
    rule,
    { ...rule, id: "more", estimate: { default: 50 } },
    { ...rule, id: "money", unit: "microdollars", cost: { attribute: "m" } },
    { ...bare, id: "bare", cost: { attribute: "b" } },
  ];
  const limiter = createLimiter({ rules });
  const metrics = reservationMetrics(limiter);
  const { reservation } = await limiter.check({ org: "a" });
  await limiter.settle(reservation!.id, { t: 260, m: 7, b: 1 });
  const seen = {
    opened_total: 1,
    settled_total: 1,
    "units_total kind=held unit=tokens": 250,
    "units_total kind=charged unit=tokens": 520,
    "units_total kind=overrun unit=tokens": 60 + 210,
    "units_total kind=held unit=microdollars": 200,
    "units_total kind=charged unit=microdollars": 7,
    "units_total kind=held unit=": 200,
    "units_total kind=charged unit=": 1,
  };
  expect(await scraped(limiter, metrics)).toEqual(seen);
  // A counter must never decrease, nor jump.
  limiter.setRules([]);
  expect(await scraped(limiter, metrics)).toEqual(seen);
  await limiter.close();
});

test("beyond 32 unit names, the rest is summed under an empty name", async () => {
  const rules = Array.from({ length: 50 }, (_, i): Rule => ({ ...rule, id: `r${i}`, unit: `u${i}` }));
  const limiter = createLimiter({ rules: rules.slice(0, 25) });
  const metrics = reservationMetrics(limiter);
  await limiter.check({ org: "a" });
  await scraped(limiter, metrics);
  limiter.setRules(rules.slice(25));
  await limiter.check({ org: "a" });
  const seen = await scraped(limiter, metrics);
  const units = Object.entries(seen).filter(([name]) => name.startsWith("units_total kind=held"));
  expect([units.length, units.reduce((sum, [, value]) => sum + value, 0)]).toEqual([32, 50 * 200]);
  expect([seen["units_total kind=held unit=u0"], seen["units_total kind=held unit="]]).toEqual([200, 19 * 200]);
  await limiter.close();
});

test("reservations that were never settled, and settlements that reached the store too late, are counted", async () => {
  vi.useFakeTimers();
  try {
    const store = memoryStore();
    const limiter = createLimiter({ store, rules: [rule] });
    await limiter.check({ org: "a" });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await scraped(limiter)).toMatchObject({ opened_total: 1, expired_total: 1 });
    const { reservation } = await limiter.check({ org: "a" });
    store.settle = () => {
      throw new SluiceError("store-unavailable", "away");
    };
    await limiter.settle(reservation!.id, { t: 1 });
    expect(await scraped(limiter)).toMatchObject({ pending: 1 });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await scraped(limiter)).toEqual({
      opened_total: 2,
      expired_total: expect.any(Number),
      dropped_total: 1,
      "units_total kind=held unit=tokens": 400,
    });
  } finally {
    vi.useRealTimers();
  }
});
