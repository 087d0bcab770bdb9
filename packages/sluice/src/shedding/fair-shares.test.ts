import { expect, test } from "vitest";
import { BUCKETS, FairShares } from "./fair-shares.js";

/** Keys that share no bucket in any row. */
const hashOf = (key: number): number => key | (key << 8) | (key << 16);

function asked(counts: readonly number[], hash = hashOf): FairShares {
  const shares = new FairShares();
  counts.forEach((count, key) => {
    for (let i = 0; i < count; i++) shares.note(hash(key));
  });
  return shares;
}

const passing = (shares: FairShares, counts: readonly number[], hash = hashOf): number[] =>
  counts.map((count, key) => count * shares.shareOf(hash(key)));

test("a key with ten times the traffic gets what the others get", () => {
  const counts = [1000, 100, 100, 100];
  const shares = asked(counts);
  shares.divide(0.2, 1);
  for (const count of passing(shares, counts)) expect(count).toBeCloseTo(65);
});

test("keys that ask for less than their share get all of it, and leave the rest to the others", () => {
  const counts = [10, 20, 500, 500];
  const shares = asked(counts);
  shares.divide(0.5, 1);
  expect(passing(shares, counts).map(Math.round)).toEqual([10, 20, 243, 243]);
});

test("keys that share a bucket in one row keep one share each, and leave none of it to a greedy one", () => {
  // The first row has one bucket for all of them but the greedy key.
  const hash = (key: number): number => (hashOf(key) & ~0xff) | (key === 0 ? 0 : 1);
  const counts = [1000, 100, 100, 100];
  const shares = asked(counts, hash);
  shares.divide(0.2, 1);
  for (const count of passing(shares, counts, hash)) expect(count).toBeCloseTo(65);
});

test("if all may pass, all pass; a key that is all the traffic gets everything", () => {
  const shares = asked([100]);
  shares.divide(1, 1);
  expect(shares.shareOf(hashOf(0))).toBe(1);
  shares.divide(0.25, 1);
  expect(shares.shareOf(hashOf(0))).toBeCloseTo(0.25);
  expect(shares.shareOf(hashOf(1))).toBe(1);
});

test("a flood of new keys over every bucket leaves each the same share", () => {
  const shares = asked(Array.from({ length: BUCKETS }, () => 10));
  shares.divide(0.1, 1);
  for (let i = 0; i < BUCKETS; i++) expect(shares.shareOf(hashOf(i))).toBeCloseTo(0.1);
});

test("old demand is forgotten", () => {
  const shares = asked([1000, 10]);
  for (let i = 0; i < 40; i++) shares.divide(0.5, 0.5);
  for (let i = 0; i < 10; i++) shares.note(hashOf(1));
  shares.divide(0.5, 1);
  expect(shares.shareOf(hashOf(1))).toBeLessThan(0.6);
});
