import { expect, test } from "vitest";
import { type PoolAsked, pool } from "../algorithms/pool.js";
import type { CheckPlan } from "../check.js";
import { fillOf, sizeFetch, usableMs } from "./fetch-size.js";

const plan: CheckPlan = {
  rule: "r",
  mode: "enforce",
  variant: undefined,
  policy: { stored: "rolling-window-packed", limit: 10_000, windowMs: 10_000, minIntervalMs: 0 },
  keyEnd: "",
  onStoreFailure: "local",
  prefetchMs: 0,
  regionTermMs: 1_000,
  maxWaitMs: 0,
};
const NOBODY = { units: 0, forMs: 0, leastCost: 1 };

function asked(more: Partial<PoolAsked> = {}, numbers: Partial<PoolAsked["numbers"]> = {}): PoolAsked {
  const numbersNow = { ...pool.fresh(), ...numbers };
  return { nowMs: 5_000, isMine: true, arrived: 0, elapsedMs: 500, held: 0, numbers: numbersNow, ...more };
}

const size = (given: PoolAsked, waiting = NOBODY, isLast = false, left = 0) =>
  sizeFetch(plan, given, { waiting, roundTripMs: 200, left, regions: 4, isLast });

test("a busy region wants what it uses in half a term and a round trip, and a little more", () => {
  const { want, need } = size(asked({ arrived: 250 }, { rate: 0.5, units: 100 }));
  // 0.5 a ms for 700 ms, and three times its square root.
  expect(want).toBe(350 + 57 - 100);
  expect(need).toBe(1);
});

test("while home has plenty, it also wants a part of that: for a term at most, and the next fetch is as far away", () => {
  const busy = asked({ arrived: 250 }, { rate: 0.5 });
  const plain = size(busy);
  // A third of a quarter.
  expect(size(busy, NOBODY, false, 1_200)).toMatchObject({ want: plain.want + 100, low: plain.low });
  expect(size(busy, NOBODY, false, 1_000_000).want).toBe(plain.want + 500);
  const quiet = asked({ arrived: 1 }, { rate: 0.002 });
  expect(size(quiet, NOBODY, false, 1_000_000).want).toBe(size(quiet).want + 62);
});

test("an idle region wants nothing, and one that closes gives everything back", () => {
  expect(size(asked({}, { units: 50 })).want).toBe(0);
  expect(size(asked({ arrived: 100 }), NOBODY, true)).toMatchObject({ want: 0, need: 0 });
});

test("what waiting requests need is requested in full; a pool that was empty grows at once", () => {
  const cold = size(asked({ elapsedMs: 0 }), { units: 3, forMs: 1, leastCost: 1 });
  expect(cold.need).toBe(3);
  // A sixteenth of what the limit gives in a term.
  expect(cold.want).toBe(62);
  const hot = size(asked({ arrived: 50 }, { rate: 0.1 }), { units: 40, forMs: 200, leastCost: 1 });
  expect(hot.want).toBe(250);
});

test("what instances hold is not for requests that wait", () => {
  const waiting = { units: 3, forMs: 1, leastCost: 1 };
  expect(size(asked({ held: 199 }, { units: 200 }), waiting)).toMatchObject({ want: 2, need: 2 });
  expect(size(asked({ held: 190 }, { units: 200 }), waiting)).toMatchObject({ want: 0, need: 0 });
});

test("the share is what the region used of the limit's rate", () => {
  expect(size(asked({ arrived: 100 }, { share: -1 })).share).toBeCloseTo(0.2);
  expect(size(asked({ elapsedMs: 0 }, { share: 0.4 })).share).toBe(0.4);
  expect(size(asked({ arrived: 5_000 }, { share: -1 })).share).toBe(1);
});

test("units live from before the fetch was sent, minus the possible clock drift", () => {
  const grant = { units: 5, kept: 0, lifeMs: 1_000, retryAfterMs: 0 };
  expect(usableMs(grant)).toBe(978);
  const fetch = { holder: "h", seq: 9, used: 0, held: 0, want: 5, need: 0 };
  const own = { want: 5, need: 0, rate: 1, share: 0.1, low: 2 };
  const fill = fillOf({
    plan,
    asked: asked(),
    size: own,
    fetch,
    grant,
    resetAfterMs: 0,
    waiting: NOBODY,
    roundTripMs: 200,
  });
  expect(fill).toMatchObject({ seq: 9, unitsEndMs: 5_978, renewAtMs: 5_978 - 323, refusedForMs: 0, lowPart: 0.4 });
});

test("if units are missing, it is a refusal for at least a part of the term, and at most a second", () => {
  const fetch = { holder: "h", seq: 9, used: 0, held: 0, want: 5, need: 5 };
  const own = { want: 5, need: 5, rate: 1, share: 0.1, low: 2 };
  const fillFor = (retryAfterMs: number) => {
    const grant = { units: 0, kept: 0, lifeMs: 1_000, retryAfterMs };
    return fillOf({
      plan,
      asked: asked(),
      size: own,
      fetch,
      grant,
      resetAfterMs: 0,
      waiting: NOBODY,
      roundTripMs: 200,
    });
  };
  expect(fillFor(10)).toMatchObject({ refusedForMs: 125, retryAfterMs: 125, lowPart: -1 });
  expect(fillFor(60_000)).toMatchObject({ refusedForMs: 1_000, retryAfterMs: 59_800 });
});
