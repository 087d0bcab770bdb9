/** Parts that scenarios share: requests at random times, and faults that end. */
import type { Rule } from "../../../packages/sluice/src/rules/rule.js";
import type { NetworkFaults } from "../network.js";
import type { Step } from "../plan.js";
import type { Random } from "../random.js";

export const calm: NetworkFaults = { delayMs: [0.2, 3], loss: 0, doubling: 0, stragglers: 0 };

/** Loss and doubling up to 5 %, delay up to 50 ms, and some messages that miss their deadline. */
export function rough(random: Random): NetworkFaults {
  return {
    delayMs: [0.2, random.between(1, 50)],
    loss: random.of([0, 0.01, 0.05]),
    doubling: random.of([0, 0.05]),
    stragglers: random.of([0, 0.02]),
  };
}

/** Instants at which requests arrive, in bursts and at random. */
export function arrivals(random: Random, { count, untilMs }: { count: number; untilMs: number }): number[] {
  const times: number[] = [];
  while (times.length < count) {
    const atMs = random.between(0, untilMs);
    const burst = random.chance(0.2) ? random.whole(2, 12) : 1;
    for (let i = 0; i < burst; i++) times.push(atMs + (random.chance(0.5) ? 0 : random.between(0, 20)));
  }
  return times.sort((a, b) => a - b);
}

/** Crashes, each with a restart. */
export function crashes(
  random: Random,
  { instances, count, untilMs }: { instances: number; count: number; untilMs: number },
): Step[] {
  return Array.from({ length: count }).flatMap((): Step[] => {
    const instance = random.whole(0, instances - 1);
    const atMs = random.between(0, untilMs * 0.9);
    const end: Step = { do: random.of(["crash", "close"] as const), atMs, instance };
    return [end, { do: "start", atMs: atMs + random.between(1, untilMs * 0.1), instance }];
  });
}

/** Some instances lose the store for a while. */
export function cuts(
  random: Random,
  {
    instances,
    count,
    untilMs,
    longestMs = untilMs * 0.2,
  }: { instances: number; count: number; untilMs: number; longestMs?: number },
): Step[] {
  return Array.from({ length: count }).flatMap((): Step[] => {
    const instance = random.whole(0, instances - 1);
    const atMs = random.between(0, untilMs * 0.9);
    return [
      { do: "cut", atMs, instance },
      { do: "heal", atMs: atMs + random.between(1, longestMs), instance },
    ];
  });
}

export function inOrder(steps: readonly Step[]): Step[] {
  return [...steps].sort((a, b) => a.atMs - b.atMs);
}

/** A rule that counts, of any algorithm, with a small limit. */
export function countingRule(
  random: Random,
  id: string,
  windows: readonly string[] = ["50ms", "250ms", "1s", "3s", "10s"],
): Rule {
  const base = { id, key: random.of([["user"], []]), limit: random.whole(1, 12), window: random.of(windows) };
  const algorithm = random.of([
    "token-bucket",
    "gcra",
    "fixed-window",
    "sliding-counter",
    "rolling-window",
    "rolling-window",
  ] as const);
  switch (algorithm) {
    case "rolling-window":
      return {
        ...base,
        algorithm,
        storage: random.of(["sorted-set", "packed"] as const),
        ...(random.chance(0.2) ? { minInterval: "20ms" } : {}),
      };
    case "gcra":
      return { ...base, algorithm, ...(random.chance(0.5) ? { burst: random.whole(1, base.limit) } : {}) };
    default:
      return { ...base, algorithm };
  }
}
