/**
 * The prefetch protocol, exhaustively for small constants: every interleaving of fetches, uses, settlements, lost, late and doubled
 * messages, and crashes, for as long as anything can happen. Each mistake that the protocol is built against is shown to break it.
 */
import { describe, expect, test } from "vitest";
import { type Explored, explore } from "./explore.js";
import { type Mistake, type PrefetchConstants, prefetchProtocol } from "./prefetch-model.js";
import { type RegionConstants, type RegionMistake, regionProtocol } from "./region-model.js";

const base: PrefetchConstants = {
  algorithm: "rolling-window",
  fetches: [2, 1],
  limit: 1,
  windowSteps: 2,
  termSteps: 2,
  half: false,
  doubles: 1,
  crashes: 0,
};

function report(name: string, { states, violation }: Explored): void {
  const found = violation === undefined ? "holds" : `${violation.what}: ${violation.way.join(", ")}`;
  console.log(`${name}: ${states} states, ${found}`);
}

describe("prefetched units never pass the limit", () => {
  test.each<[string, Partial<PrefetchConstants>]>([
    ["rolling window, one message doubled", {}],
    ["rolling window, a holder crashes", { doubles: 0, crashes: 1 }],
    ["rolling window, two units, grants of half", { limit: 2, half: true, doubles: 0 }],
    ["rolling window, a term longer than the window", { termSteps: 3, windowSteps: 1, doubles: 0 }],
    ["the library's own grants, one message doubled", { shipped: true }],
    ["the library's own grants, three units", { shipped: true, limit: 3, doubles: 0 }],
    ["the library's own grants, a holder crashes", { shipped: true, doubles: 0, crashes: 1 }],
    ["the library's own holders, one message doubled", { shippedHolder: true }],
    ["the library's own holders, a holder crashes", { shippedHolder: true, doubles: 0, crashes: 1 }],
    ["the library's own holders and grants", { shipped: true, shippedHolder: true, doubles: 0 }],
    ["the library's own holders and grants, two units", { shipped: true, shippedHolder: true, limit: 2, doubles: 0 }],
    ["the library's own holders, token bucket", { shippedHolder: true, algorithm: "bucket", doubles: 0 }],
    ["the library's own holders, fixed window", { shippedHolder: true, algorithm: "fixed-window", doubles: 0 }],
    ["token bucket, one message doubled", { algorithm: "bucket" }],
    ["token bucket, two tokens", { algorithm: "bucket", limit: 2, doubles: 0 }],
    ["fixed window, one message doubled", { algorithm: "fixed-window" }],
    ["fixed window, two units", { algorithm: "fixed-window", limit: 2, doubles: 0 }],
  ])("%s", (name, constants) => {
    const found = explore(prefetchProtocol({ ...base, ...constants }));
    report(name, found);
    expect(found.violation).toBeUndefined();
    expect(found.states).toBeGreaterThan(1_000);
  });
});

describe("each mistake passes the limit", () => {
  test.each<[Mistake, Partial<PrefetchConstants>]>([
    ["grant-plus-window", { doubles: 0, fetches: [1, 1] }],
    ["grant-plus-window", { doubles: 0, fetches: [1, 1], algorithm: "bucket" }],
    ["term-from-reply", { doubles: 0, fetches: [1, 1] }],
    ["stamp-of-first-use", { doubles: 0, limit: 2 }],
    ["no-sequence", { half: true, limit: 3, fetches: [1, 2] }],
    ["late-reply", {}],
    ["ended-units", { doubles: 0 }],
    ["past-the-window", { doubles: 0, algorithm: "fixed-window", fetches: [1, 1] }],
    ["grant-plus-window", { doubles: 0, fetches: [1, 1], shippedHolder: true }],
    ["term-from-reply", { doubles: 0, fetches: [1, 1], shippedHolder: true, shipped: true }],
    ["late-reply", { shippedHolder: true, shipped: true }],
  ])("%s %j", (mistake, constants) => {
    const found = explore(prefetchProtocol({ ...base, ...constants, mistake }));
    report(mistake, found);
    expect(found.violation?.way.length).toBeGreaterThan(3);
  });
});

const nested: RegionConstants = {
  limit: 1,
  windowSteps: 2,
  regionTerm: 2,
  instanceTerm: 2,
  fetches: [1, 1, 1],
  doubles: 0,
};

describe("units that pass through a region never pass the limit", () => {
  test.each<[string, Partial<RegionConstants>]>([
    ["beside another region", {}],
    ["two units beside another region", { limit: 2 }],
    ["terms longer than the window", { instanceTerm: 3, windowSteps: 1 }],
    ["fetched twice on both hops", { fetches: [2, 2, 0] }],
    ["a message doubled, on the first hop", { fetches: [1, 2, 0], doubles: 1, regionTerm: 3, instanceTerm: 1 }],
    ["a message doubled, on the second hop", { fetches: [2, 1, 0], doubles: 1 }],
  ])("%s", (name, constants) => {
    const found = explore(regionProtocol({ ...nested, ...constants }));
    report(name, found);
    expect(found.violation).toBeUndefined();
    expect(found.states).toBeGreaterThan(1_000);
  });

  test.each<[RegionMistake, Partial<RegionConstants>]>([
    ["later-end", { instanceTerm: 3, windowSteps: 1 }],
    ["hidden-units", { fetches: [2, 2, 0] }],
    ["forgotten-end", { fetches: [1, 2, 0], regionTerm: 3, instanceTerm: 1 }],
  ])("but for the mistake %s %j", (mistake, constants) => {
    const found = explore(regionProtocol({ ...nested, ...constants, mistake }));
    report(mistake, found);
    expect(found.violation?.way.length).toBeGreaterThan(3);
  });
});
