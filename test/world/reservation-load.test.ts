/**
 * The bars of reservations, in the world: a bucket of tokens is not passed by more than 1 %, is used to 0.99 at least, and costs at most
 * 2.3 calls a request; under faults and crashes each is settled once, and what passes is within the bound.
 */
import { expect, test } from "vitest";
import { drawn, leastBeyond, mostWithoutRisk } from "../../bench/reservation-frontier.mjs";
import type { NetworkFaults } from "./network.js";
import { generatedTokens, type ReservationLoad, runReservationLoad } from "./reservation-load.js";

const calm: NetworkFaults = { delayMs: [0.5, 4], loss: 0, doubling: 0, stragglers: 0 };
const faulty: NetworkFaults = { delayMs: [0.2, 50], loss: 0.05, doubling: 0.05, stragglers: 0.01 };

const loadOf = (limit: number) => ({
  seed: 1,
  limit,
  minutes: limit < 10_000 ? 60 : 12,
  faults: calm,
  crashesPerMinute: 0,
});

async function run(load: ReservationLoad): ReturnType<typeof runReservationLoad> {
  const found = await runReservationLoad(load);
  // A bucket knows no windows: a full one passes twice the limit within the first.
  const beyond = load.algorithm.endsWith("window") ? `${(100 * found.windowsBeyond).toFixed(1)} %` : "-";
  const produced = `${((100 * found.overAsProduced) / load.limit).toFixed(2)} %`;
  console.log(
    `| ${load.algorithm} | ${load.limit} | ${load.instances} | ${((100 * found.over) / load.limit).toFixed(2)} % | ` +
      `${((100 * found.overWhereAdmitted) / load.limit).toFixed(2)} % | ${produced} | ${beyond} | ` +
      `${found.utilisation.toFixed(4)} | ${found.callsPerRequest.toFixed(2)} | ${found.admitted} |`,
  );
  return found;
}

// Columns: algorithm, tokens a minute, instances, beyond the limit in the worst window, the same if all is counted where it was admitted,
// or each token when it was produced, windows more than 1 % beyond it, counted where admitted, utilisation, calls a request, requests.
test.each<[ReservationLoad["algorithm"], number, number]>([
  ["token-bucket", 50_000, 1],
  ["token-bucket", 50_000, 8],
  ["token-bucket", 5_000, 1],
  ["token-bucket", 5_000, 8],
  ["gcra", 50_000, 4],
  ["gcra", 5_000, 2],
  ["fixed-window", 50_000, 1],
  ["fixed-window", 50_000, 8],
])(
  "%s, %i tokens a minute on %i instances at twice the limit: within a hundredth, and used",
  async (algorithm, limit, instances) => {
    const found = await run({ ...loadOf(limit), algorithm, instances });
    expect(found.over).toBeLessThanOrEqual(limit / 100);
    // A fixed window ends while streams of it still run: those count in the next one.
    if (algorithm !== "fixed-window") expect(found.overAsProduced).toBeLessThanOrEqual(limit / 100);
    expect(found.utilisation).toBeGreaterThanOrEqual(0.99);
    expect(found.callsPerRequest).toBeLessThanOrEqual(2.3);
    expect(found.settledTwice).toBe(0);
    expect(found.charged).toBe(found.cost);
  },
);

/** Windows that miss the bar of 0.99, or 0.95: docs/reservations.md says why. What they reach is held all the same. */
test.each<[ReservationLoad["algorithm"], number, number, number]>([
  ["fixed-window", 5_000, 8, 0.91],
  ["rolling-window", 50_000, 2, 0.96],
  ["rolling-window", 50_000, 8, 0.96],
  ["rolling-window", 5_000, 8, 0.8],
  // Held to a rolling window, which it approximates.
  ["sliding-counter", 50_000, 1, 0.92],
  ["sliding-counter", 50_000, 8, 0.92],
  ["sliding-counter", 5_000, 8, 0.83],
])(
  "%s, %i tokens a minute on %i instances: no more passes than the bound says, and %f is used",
  async (algorithm, limit, instances, used) => {
    const found = await run({ ...loadOf(limit), algorithm, instances });
    expect(found.over).toBeLessThanOrEqual(Math.max(0, found.allowedOver));
    if (limit === 50_000) expect(found.over).toBeLessThanOrEqual(limit / 100);
    if (limit === 50_000) expect(found.overAsProduced).toBeLessThanOrEqual(limit / 100);
    expect(found.utilisation).toBeGreaterThanOrEqual(used);
    expect(found.callsPerRequest).toBeLessThanOrEqual(2.3);
    expect(found.settledTwice).toBe(0);
    expect(found.charged).toBe(found.cost);
  },
);

test("no policy for windows of 5 000 uses 0.95 with fewer than one in fifty more than 1 % beyond the limit", () => {
  // Costs of 60 fill 0.6 or 1.2 of 100: for 0.95 on average, seven windows in twelve must pass. A bound may be lower, never higher.
  const known = leastBeyond([60], { limit: 100, utilisation: 0.95 });
  expect(known).toBeLessThanOrEqual(7 / 12);
  expect(known).toBeGreaterThan(0.55);
  expect(leastBeyond([1], { limit: 100, utilisation: 1 })).toBe(0);
  const share = leastBeyond(drawn(generatedTokens), { limit: 5_000, utilisation: 0.95 });
  console.log(`windows of 5 000, utilisation 0.95: ${(100 * share).toFixed(2)} % pass, under the best policy`);
  expect(share).toBeGreaterThan(0.02);
});

test("no policy for windows of 5 000 uses more than 0.85 with none of them more than 1 % beyond the limit", () => {
  // One of 60 fits into 100. Behind 50 another may follow: 101 is 1 % beyond it. Behind 51 none may: 102 would be more.
  expect(mostWithoutRisk([60], 100)).toBeCloseTo(0.6, 10);
  expect(mostWithoutRisk([50, 51], 100)).toBeCloseTo((1 + 1.01) / 4 + 0.51 / 2, 10);
  const most = mostWithoutRisk(drawn(generatedTokens), 5_000);
  console.log(`windows of 5 000, none more than 1 % beyond the limit: at most ${most.toFixed(4)}`);
  expect(most).toBeLessThan(0.85);
  // A policy that admits while the longest fits has this much; no bound may be below it.
  expect(most).toBeGreaterThan(0.83);
});

test.each<[ReservationLoad["algorithm"], number]>([
  ["token-bucket", 1],
  ["fixed-window", 2],
  ["rolling-window", 3],
])(
  "%s with loss, doubling, delay and crashes: each is settled once, and no more passes than the bound says",
  async (algorithm, seed) => {
    const load = { seed, algorithm, limit: 20_000, instances: 8, minutes: 10, faults: faulty, crashesPerMinute: 4 };
    const { settledTwice, over, allowedOver, charged, cost } = await run(load);
    expect(settledTwice).toBe(0);
    expect(over).toBeLessThanOrEqual(Math.max(0, allowedOver));
    // Instances that crash may have settled, and not heard of it.
    expect(charged).toBeGreaterThanOrEqual(cost);
  },
);
