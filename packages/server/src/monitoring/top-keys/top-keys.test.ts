/** The sketch compared with exact counts: its bound, its merge, on skewed and on even streams. */
import type { DecidedRequest, Decision } from "sluice";
import { expect, test } from "vitest";
import { FrequentItems } from "./frequent-items.js";
import { type KeySummary, mergeSummaries, mostOf, parseSummary, spellSummary } from "./key-summary.js";
import { TopKeys } from "./top-keys.js";

/** Deterministic, so that failures can be reproduced. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

/** Zipf-distributed ranks from 1 to `keys`, with exponent s. */
function zipf({ keys, s, seed }: { keys: number; s: number; seed: number }): () => number {
  const cumulative = new Float64Array(keys);
  let sum = 0;
  for (let i = 0; i < keys; i++) {
    sum += 1 / (i + 1) ** s;
    cumulative[i] = sum;
  }
  const next = random(seed);
  return () => {
    const wanted = next() * sum;
    let low = 0;
    let high = keys - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (cumulative[middle]! < wanted) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}

const streams = {
  "Zipf 1.1 over 100 000 keys": zipf({ keys: 100_000, s: 1.1, seed: 1 }),
  "Zipf 0.8 over 100 000 keys": zipf({ keys: 100_000, s: 0.8, seed: 2 }),
  "even over 20 000 keys": zipf({ keys: 20_000, s: 0, seed: 3 }),
};
const LENGTH = 300_000;

test.each(Object.entries(streams))(
  "%s: every count is within the stated error, and the table is bounded",
  (_, draw) => {
    const keep = 1_000;
    const items = new FrequentItems<{ count: number }>(keep);
    const exact = new Map<string, number>();
    for (let i = 0; i < LENGTH; i++) {
      const key = `k${draw()}`;
      exact.set(key, (exact.get(key) ?? 0) + 1);
      const item = items.find(key);
      if (item === undefined) items.insert(key, { count: 1 });
      else item.count++;
    }
    expect(items.size).toBeLessThan(2 * keep);
    expect(items.offset).toBeLessThanOrEqual(LENGTH / (keep + 1));
    const wrong = [...exact].filter(([key, truth]) => {
      const count = items.find(key)?.count ?? 0;
      return count > truth || count + items.offset < truth;
    });
    expect(wrong).toEqual([]);
  },
);

function decisionOf(key: string, allowed: boolean): [Decision, DecidedRequest] {
  const check = { rule: "r", mode: "enforce", allowed, limit: 10, remaining: allowed ? 5 : 0 };
  return [
    { checks: [check] } as unknown as Decision,
    { attributes: {}, options: {}, checks: [{ key: `{user=${key}}:r:z`, cost: 1 }] },
  ];
}

test.each(Object.entries(streams))(
  "%s: merged over four instances and two quarters, no count is below the truth or beyond its error",
  (_, draw) => {
    const exact = new Map<string, { count: number; refused: number }>();
    const summaries: KeySummary[] = [];
    const chance = random(9);
    for (let instance = 0; instance < 4; instance++) {
      const topKeys = new TopKeys(() => ["user"]);
      for (let quarter = 0; quarter < 2; quarter++) {
        for (let i = 0; i < LENGTH / 8; i++) {
          const rank = draw();
          const allowed = chance() < 0.7;
          const truth = exact.get(`${rank}`) ?? { count: 0, refused: 0 };
          exact.set(`${rank}`, { count: truth.count + 1, refused: truth.refused + (allowed ? 0 : 1) });
          topKeys.add(...decisionOf(`${rank}`, allowed));
        }
        if (quarter === 0) topKeys.endQuarter({ endsHour: false });
      }
      summaries.push(parseSummary(spellSummary(topKeys.hour())));
    }
    const merged = mergeSummaries(summaries, 200);
    expect(merged.checks).toBe(8 * Math.floor(LENGTH / 8));
    for (const [list, kind] of [
      [merged.traffic, "count"],
      [merged.refusals, "refused"],
    ] as const) {
      expect(list.items).toHaveLength(200);
      const listed = new Map(list.items.map((item) => [item.key, item]));
      const wrong = [...exact].filter(([rank, truth]) => {
        const item = listed.get(`{user=${rank}}:r:`);
        if (item === undefined) return truth[kind] > list.absent;
        return item.count > truth[kind] || mostOf(item) < truth[kind];
      });
      expect(wrong).toEqual([]);
    }
  },
);

test("on a skewed stream the ten most frequent keys are found, in order", () => {
  const draw = zipf({ keys: 100_000, s: 1.1, seed: 5 });
  const topKeys = new TopKeys(() => ["user"]);
  const exact = new Map<number, number>();
  for (let i = 0; i < LENGTH; i++) {
    const rank = draw();
    exact.set(rank, (exact.get(rank) ?? 0) + 1);
    topKeys.add(...decisionOf(`${rank}`, true));
  }
  const truth = [...exact].sort(([, a], [, b]) => b - a).slice(0, 10);
  const found = topKeys.quarter().traffic.items.slice(0, 10);
  expect(found.map(({ key }) => key)).toEqual(truth.map(([rank]) => `{user=${rank}}:r:`));
  const errors = found.map((item, i) => (mostOf(item) - truth[i]![1]) / truth[i]![1]);
  expect(Math.max(...errors)).toBeLessThan(0.05);
});

test("values of which a key holds only the digest are kept truncated, and only those of the rule's key", () => {
  const topKeys = new TopKeys(() => ["user"]);
  const [decision] = decisionOf("", true);
  const attributes = { user: "u".repeat(5_000), secret: "not a part of the key" };
  topKeys.add(decision, { attributes, options: {}, checks: [{ key: "{#digest}:r:z", cost: 1 }] });
  expect(topKeys.quarter().traffic.items).toMatchObject([{ attributes: { user: `${"u".repeat(256)}…` } }]);
  expect(spellSummary(topKeys.quarter())).not.toContain("not a part");
});
