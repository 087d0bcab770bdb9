/** The bars of prefetch, in the world: nothing beyond the limit in any window under faults; at least 98 % of it used under overload. */
import { appendFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type FleetLoad, runFleetLoad } from "./fleet-load.js";
import type { NetworkFaults } from "./network.js";

const calm: NetworkFaults = { delayMs: [0.5, 4], loss: 0, doubling: 0, stragglers: 0 };
const faulty: NetworkFaults = { delayMs: [0.2, 50], loss: 0.05, doubling: 0.05, stragglers: 0.01 };

const LEAST_UTILISATION = 0.98;

// Columns: algorithm, instances, load, over the limit, utilisation, store calls a request, share decided from units in hand.

/** Enough traffic on each instance that units are worth fetching. */
function loadOf(algorithm: FleetLoad["algorithm"], instances: number, overload: number): FleetLoad {
  return {
    seed: 1,
    algorithm,
    instances,
    overload,
    limit: Math.max(1_000, Math.ceil((48 * instances) / overload)),
    windowMs: 1_000,
    prefetchMs: 100,
    windows: instances < 100 ? 5 : 2,
    faults: calm,
    deadlineMs: 50,
    driftPpm: 500,
    crashesPerSecond: 0,
  };
}

/** `npm run bench` prints these figures as its bars, and names the file. */
const figuresFile = process.env.WORLD_FIGURES;

interface Figures {
  readonly over: number;
  readonly utilisation: number;
  readonly storeCallsPerRequest: number;
  readonly share: number;
}

async function run(load: FleetLoad, bar: "overload" | "faults" | "hot key"): Promise<Figures> {
  const found = await runFleetLoad(load);
  const share = found.fromHand / found.requests;
  const { over, utilisation, storeCallsPerRequest } = found;
  const figures = { over, utilisation, storeCallsPerRequest, share };
  const { algorithm, instances, overload } = load;
  if (figuresFile !== undefined)
    appendFileSync(figuresFile, `${JSON.stringify({ bar, algorithm, instances, overload, ...figures })}\n`);
  console.log(
    `| ${load.algorithm} | ${load.instances} | ${load.overload} | ${found.over} | ${found.utilisation.toFixed(4)} | ` +
      `${found.storeCallsPerRequest.toFixed(3)} | ${share.toFixed(2)} |`,
  );
  expect(found.fromHand).toBeGreaterThan(0);
  return figures;
}

// A bucket starts full: only at three times the limit is it empty before the second window, so that its rate shows.
test.each<[FleetLoad["algorithm"], number, number]>([
  ["rolling-window", 2, 1.2],
  ["rolling-window", 2, 3],
  ["rolling-window", 8, 1.2],
  ["rolling-window", 8, 3],
  ["rolling-window", 64, 1.2],
  ["rolling-window", 64, 3],
  ["rolling-window", 512, 1.2],
  ["rolling-window", 512, 3],
  ["token-bucket", 2, 3],
  ["token-bucket", 64, 3],
  ["gcra", 8, 3],
  ["fixed-window", 2, 1.2],
  ["fixed-window", 64, 3],
  ["fixed-window", 8, 1.2],
])(
  "%s on %i instances at %d times the limit: used to 0.98 at least, and not passed",
  async (algorithm, instances, overload) => {
    const { over, utilisation } = await run(loadOf(algorithm, instances, overload), "overload");
    expect(over).toBe(0);
    expect(utilisation).toBeGreaterThanOrEqual(LEAST_UTILISATION);
  },
);

test.each<[FleetLoad["algorithm"], number]>([
  ["rolling-window", 1],
  ["rolling-window", 8],
  ["rolling-window", 64],
  ["rolling-window", 512],
  ["token-bucket", 64],
  ["gcra", 8],
  ["fixed-window", 64],
])(
  "%s on %i instances with loss, doubling, delay to 50 ms, crashes and drift: not passed",
  async (algorithm, instances) => {
    const load = { ...loadOf(algorithm, instances, 2), prefetchMs: 400, deadlineMs: 120 };
    const { over } = await run({ ...load, faults: faulty, crashesPerSecond: instances / 10 }, "faults");
    expect(over).toBe(0);
  },
);

// The slower rate is that of bench/prefetch.mjs on two cores: as many requests a prefetch time, but more of the window in hands.
test.each<[number, number, number]>([
  [100_000, 20, 0.8],
  [100_000, 20, 1],
  [100_000, 20, 1.05],
  [100_000, 20, 2],
  [25_000, 80, 0.95],
  [25_000, 80, 1],
  [25_000, 80, 1.05],
])(
  "eight instances on one hot key, %i a second asked, prefetch of %i ms, %d times the limit: nearly all decided in process",
  async (perSecond, prefetchMs, overload) => {
    const windows = perSecond < 100_000 ? 4 : 2;
    const hot = { limit: Math.round(perSecond / overload), windowMs: 1_000, prefetchMs, windows };
    const { over, storeCallsPerRequest, share } = await run(
      { ...loadOf("rolling-window", 8, overload), ...hot },
      "hot key",
    );
    expect(over).toBe(0);
    expect(storeCallsPerRequest).toBeLessThanOrEqual(0.03);
    // Beyond the limit the rest is refused.
    expect(share).toBeGreaterThan(0.9 / Math.max(1, overload));
  },
);
