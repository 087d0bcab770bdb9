import { expect, test } from "vitest";
import { chargeTime, type Fetch, type Grants, grant, grantOf, noGrants, settle, takeEnded } from "./grants.js";
import type { RollingWindowPolicy } from "./policy.js";
import { rollingWindow } from "./rolling-window.js";

const policy: RollingWindowPolicy = { stored: "rolling-window-packed", limit: 100, windowMs: 1_000, minIntervalMs: 0 };
const NOW_MS = 1_000_000;

function fetch(own: Partial<Fetch>): Fetch {
  return { holder: "a", seq: 1, used: 0, held: 0, want: 10, ...own };
}

function granted(grants: Grants, asked: Fetch, left = 100, nowMs = NOW_MS): number {
  settle(grants, asked);
  return grant(grants, asked, { policy, state: rollingWindow.fresh(), termMs: 20, left, nowMs }).units;
}

test("a holder gets what it wants, at most half of what is left, and less among many holders", () => {
  expect(granted(noGrants(), fetch({ want: 10 }), 100)).toBe(10);
  expect(granted(noGrants(), fetch({ want: 80 }), 100)).toBe(50);
  expect(granted(noGrants(), fetch({ want: 80 }), 1)).toBe(1);
  expect(granted(noGrants(), fetch({ want: 80 }), 0)).toBe(0);
  const crowd = noGrants();
  for (let i = 0; i < 40; i++) granted(crowd, fetch({ holder: `h${i}`, want: 0 }));
  expect(granted(crowd, fetch({ want: 80 }), 82)).toBe(8);
});

test("a repeated fetch gets the same grant, and nothing is held twice", () => {
  const grants = noGrants();
  granted(grants, fetch({}));
  expect(settle(grants, fetch({}))).toEqual({ kind: "repeated", spent: 0 });
  expect(grantOf(grants, "a", NOW_MS + 5)).toEqual({ units: 10, kept: 0, lifeMs: 15, retryAfterMs: 0 });
  expect(grants.total).toBe(10);
});

test("a fetch that was overtaken by a later one gets nothing", () => {
  const grants = noGrants();
  granted(grants, fetch({ seq: 2 }));
  expect(settle(grants, fetch({ seq: 1 })).kind).toBe("late");
  expect(grants.total).toBe(10);
});

test("settling charges what was used, keeps what is in hand, and frees the rest", () => {
  const grants = noGrants();
  granted(grants, fetch({}));
  expect(settle(grants, fetch({ seq: 2, used: 6, held: 3 }))).toEqual({ kind: "new", spent: 6 });
  expect(grants.total).toBe(3);
});

test("units of a grant whose reply was lost are free again with the next fetch", () => {
  const grants = noGrants();
  granted(grants, fetch({}));
  expect(settle(grants, fetch({ seq: 2, used: 0, held: 0 }))).toEqual({ kind: "new", spent: 0 });
  expect(grants.total).toBe(0);
});

test("a holder that claims more than it was granted is charged no more than that, and keeps no more", () => {
  const grants = noGrants();
  granted(grants, fetch({}));
  expect(settle(grants, fetch({ seq: 2, used: 1_000, held: 4 })).spent).toBe(6);
  expect(settle(grants, fetch({ seq: 3, used: 1_000, held: 1_000 })).spent).toBe(0);
  expect(grants.total).toBe(4);
});

test("units that nobody settled expire after their term, all at the latest of their expiries", () => {
  const grants = noGrants();
  granted(grants, fetch({}));
  granted(grants, fetch({ holder: "b", want: 4 }), 90, NOW_MS + 5);
  expect(takeEnded(grants, NOW_MS + 19)).toEqual({ units: 0, atMs: 0 });
  expect(takeEnded(grants, NOW_MS + 20)).toEqual({ units: 10, atMs: NOW_MS + 20 });
  expect(takeEnded(grants, NOW_MS + 40)).toEqual({ units: 4, atMs: NOW_MS + 25 });
  expect(grants.total).toBe(0);
});

test("expired units are charged at their expiry, unless that has left the window", () => {
  const state = rollingWindow.fresh();
  expect(chargeTime(policy, state, NOW_MS, NOW_MS + 999)).toBe(NOW_MS);
  expect(chargeTime(policy, state, NOW_MS, NOW_MS + 1_000)).toBeUndefined();
});

test("a clock that stepped back leaves no units held for longer than the longest term", () => {
  const grants = noGrants();
  granted(grants, fetch({}));
  takeEnded(grants, NOW_MS - 3_600_000);
  expect(takeEnded(grants, NOW_MS - 3_600_000 + 60_000).units).toBe(10);
});
