import type { Rule } from "sluice";
import { expect, test } from "vitest";
import type { Counts } from "../history/packed-counts.js";
import { loadView } from "./read-load.js";
import type { InstanceLoad, LoadNow } from "./shared-load.js";

const rules: Rule[] = [
  { id: "keep", key: [], algorithm: "load-shedding", signal: ["inflight", "reported"], limit: "auto" },
  {
    id: "tuned",
    key: [],
    algorithm: "gcra",
    limit: 100,
    window: "1s",
    adapt: { signal: "reported", target: 0.8, min: 20, max: 200 },
  },
  { id: "paced", key: ["user"], algorithm: "gcra", limit: 1, window: "1s", maxWait: "5s" },
  { id: "plain", key: ["user"], algorithm: "gcra", limit: 1, window: "1s" },
];

function view(series: Record<string, Counts>, now: Partial<LoadNow> = {}) {
  const at = (counts: Counts) => [{ atMs: 1_000, counts }];
  const window = {
    atMs: 3_000,
    scope: "fleet" as const,
    stepMs: 1_000,
    present: [],
    covered: [
      { atMs: 0, coveredMs: 0, scope: "fleet" as const },
      { atMs: 1_000, coveredMs: 1_000, scope: "fleet" as const },
    ],
    series: new Map(Object.entries(series).map(([name, counts]) => [name, at(counts)])),
  };
  return loadView(rules, window, { instances: [], moves: [], ...now }, "live");
}

const instance = (given: Partial<InstanceLoad>): InstanceLoad => ({
  instance: "one",
  shedding: [],
  adaptive: [],
  waiting: [],
  keys: [],
  moreKeys: false,
  ...given,
});

test("a step without coverage is unknown, and so is a signal without readings", () => {
  const { shedding, waiting } = view({
    keep: { inFlightUse: 900, inFlightUses: 2, places: 80, inFlight: 36, placesSeen: 2 },
    "class:keep:all": { allowed: 5, refused: 1 },
    paced: { turns: 4, waitMs: 1_000, waiting: 6 },
  });
  expect(shedding[0]).toMatchObject({
    utilisation: { inflight: [null, 0.45], reported: [null, null] },
    places: [null, 40],
    inFlight: [null, 18],
    classes: [{ name: "all", threshold: 1, passed: 5, shed: 1, shedBy: [null, 1] }],
  });
  expect(shedding[0]!.now).toBeUndefined();
  expect(waiting).toMatchObject([{ rule: "paced", turns: 4, meanWaitMs: 250, waitingBy: [null, 6], now: 0 }]);
});

test("instances are merged: the highest utilisation, the sum of places and waiting requests, the leader's limit", () => {
  const key = { rule: "paced", attributes: { user: "ann" }, waiting: 2, longestMs: 10, lastTurnMs: 900 };
  const { shedding, adaptive, waiting, waitingKeys } = view(
    {},
    {
      instances: [
        instance({
          shedding: [{ rule: "keep", signals: { inflight: 0.2 }, places: 40, inFlight: 8 }],
          adaptive: [{ rule: "tuned", limit: 100, leads: false }],
          waiting: [["paced", 2]],
          keys: [key],
        }),
        instance({
          instance: "two",
          shedding: [{ rule: "keep", signals: { inflight: 0.9, reported: 0.1 }, places: 40, inFlight: 36 }],
          adaptive: [{ rule: "tuned", limit: 60, utilisation: 0.9, leads: true }],
          waiting: [["paced", 1]],
          keys: [
            { ...key, waiting: 1, longestMs: 50 },
            { ...key, rule: "gone" },
          ],
        }),
      ],
      moves: [
        { rule: "tuned", atMs: 1, from: 100, to: 70, instance: "two", alone: false },
        { rule: "tuned", atMs: 2, from: 70, to: 60, instance: "two", alone: false },
        { rule: "gone", atMs: 3, from: 1, to: 2, instance: "two", alone: false },
      ],
    },
  );
  expect(shedding[0]!.now).toEqual({ utilisation: { inflight: 0.9, reported: 0.1 }, places: 80, inFlight: 44 });
  expect(adaptive[0]!.now).toEqual({ limit: 60, utilisation: 0.9, leader: "two" });
  expect(adaptive[0]!.moves.map(({ to }) => to)).toEqual([60, 70]);
  expect(waiting[0]!.now).toBe(3);
  // A rule deleted in the meantime is not shown.
  expect(waitingKeys).toEqual([{ ...key, waiting: 3, longestMs: 50 }]);
});
