/** One limit for several regions: lost, late and doubled messages on both hops, crashes, cuts, stores that come back empty, clocks that step. */
import type { LoadScenario } from "../plan.js";
import { mixSeed, Random } from "../random.js";
import { type RegionLoad, runRegionLoad } from "../region-load.js";
import { Violation } from "../simulation.js";
import { calm, rough } from "./traffic.js";

export const regions: LoadScenario = {
  name: "regions",
  about:
    "one limit for several regions: faults on both hops, crashes, cuts, stores that come back empty, clocks that step",
  async run(seed, log) {
    const load = drawn(seed);
    log?.(JSON.stringify(load));
    const fleetHours = (load.regions * load.instances * load.windows * load.windowMs) / 3_600_000;
    const none = { steps: 0, fleetHours, charges: 0, fromHand: 0 };
    try {
      const { requests, byPolicy, events, messages, worstLocal, statedShare } = await runRegionLoad({
        ...load,
        ...(log !== undefined && { log }),
      });
      const isOver = worstLocal > statedShare;
      const violation = isOver ? `cut off, a region admitted ${worstLocal} of its share of ${statedShare}` : undefined;
      return { ...none, violation, events, requests, byPolicy, allowed: 0, messages };
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      const messages = { sent: 0, lost: 0, doubled: 0 };
      return { ...none, violation: error.message, events: 0, requests: 0, byPolicy: 0, allowed: 0, messages };
    }
  },
};

function drawn(seed: number): RegionLoad {
  const random = new Random(mixSeed(seed, 11));
  const windowMs = random.of([2_000, 5_000, 10_000]);
  const windows = random.whole(2, 3);
  const endMs = windows * windowMs;
  const limit = random.whole(50, 400);
  const trouble = random.of(["none", "none", "cut", "region-wiped", "home-wiped", "region-step"] as const);
  // Only the region that is cut off answers by its share then: the sum of many shares is judged by nobody here.
  const isLocal = trouble === "cut" && random.chance(0.5);
  return {
    seed,
    regions: random.whole(2, 5),
    instances: random.whole(1, 3),
    // A share that a decision states is judged by a window.
    algorithm: isLocal
      ? "rolling-window"
      : random.of(["rolling-window", "token-bucket", "gcra", "fixed-window"] as const),
    limit,
    windowMs,
    prefetchMs: random.of([0, 0, 50, 200]),
    onStoreFailure: isLocal ? "local" : "deny",
    overload: random.between(0.5, 2.5),
    windows,
    near: { ...(isLocal ? calm : rough(random)), delayMs: [0.2, random.between(1, 15)] },
    far: { ...(isLocal ? calm : rough(random)), delayMs: [random.between(1, 80), random.between(81, 200)] },
    driftPpm: random.of([0, 500]),
    crashesPerSecond: isLocal ? 0 : random.of([0, 0.5, 2]),
    hotSpotMs: random.between(1_000, 10_000),
    // What was used and is held passes beside a home that has forgotten it: once.
    mostOver: trouble === "home-wiped" ? limit : 0,
    ...(trouble === "cut" && { cut: [endMs * random.between(0.1, 0.4), endMs * random.between(0.5, 1)] as const }),
    ...(trouble === "region-wiped" && { regionWipedMs: endMs * random.between(0.2, 0.8) }),
    ...(trouble === "home-wiped" && { homeWipedMs: endMs * random.between(0.2, 0.8) }),
    ...(trouble === "region-step" && {
      regionStep: [endMs * random.between(0.2, 0.8), random.of([-3_000, -300, 5_000])] as const,
    }),
  };
}
