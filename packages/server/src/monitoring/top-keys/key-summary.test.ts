import fc from "fast-check";
import { expect, test } from "vitest";
import { type KeySummary, mergeSummaries, mostOf, parseSummary, spellSummary } from "./key-summary.js";

const keys = ["a", "b", "c", "d", "e"];

/** Streams of several instances, each summarised with only its two largest keys listed. */
const streams = fc.array(fc.array(fc.constantFrom(...keys), { maxLength: 60 }), { minLength: 1, maxLength: 4 });

function trueCounts(stream: readonly string[]): Map<string, number> {
  return new Map(keys.map((key) => [key, stream.filter((one) => one === key).length]));
}

function summaryOf(stream: readonly string[], most: number): KeySummary {
  const sorted = [...trueCounts(stream)].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a);
  const list = {
    absent: sorted[most]?.[1] ?? 0,
    items: sorted.slice(0, most).map(([key, count]) => ({ key, count, error: 0, refused: count, peak: count / 60 })),
  };
  return { checks: stream.length, refused: stream.length, traffic: list, refusals: list, spend: {} };
}

test("after merging, every true count is within its bounds, listed or absent", () => {
  fc.assert(
    fc.property(streams, fc.integer({ min: 1, max: 5 }), (parts, most) => {
      const merged = mergeSummaries(
        parts.map((part) => summaryOf(part, 2)),
        most,
      );
      const truth = trueCounts(parts.flat());
      expect(merged.checks).toBe(parts.flat().length);
      const listed = new Map(merged.traffic.items.map((item) => [item.key, item]));
      expect(listed.size).toBeLessThanOrEqual(most);
      for (const [key, seen] of truth) {
        const item = listed.get(key);
        if (item === undefined) expect(seen).toBeLessThanOrEqual(merged.traffic.absent);
        else {
          expect(item.count).toBeLessThanOrEqual(seen);
          expect(mostOf(item)).toBeGreaterThanOrEqual(seen);
        }
      }
    }),
  );
});

test("a key's peak is the highest of its parts, its refusals are summed", () => {
  const part = (peak: number): KeySummary => {
    const list = { absent: 0, items: [{ key: "a", count: 1, error: 0, refused: 1, peak }] };
    return { checks: 1, refused: 1, traffic: list, refusals: list, spend: {} };
  };
  expect(mergeSummaries([part(0.2), part(0.7), part(0.5)], 5).traffic.items).toEqual([
    { key: "a", count: 3, error: 0, refused: 3, peak: 0.7 },
  ]);
});

test("a summary survives the round trip, attributes included", () => {
  const list = {
    absent: 3,
    items: [
      { key: "k1", count: 7, error: 1, refused: 2, peak: 0.5 },
      { key: "k2", count: 5, error: 0, refused: 0, peak: 1, attributes: { user: 'q"uote', path: "/ü" } },
    ],
  };
  const none = { absent: 0, items: [] };
  const summary: KeySummary = { checks: 20, refused: 2, traffic: list, refusals: none, spend: {} };
  expect(parseSummary(spellSummary(summary))).toEqual(summary);
  const spending: KeySummary = { ...summary, spend: { tokens: list, "euro cents": none } };
  expect(parseSummary(spellSummary(spending))).toEqual(spending);
  // In the format of older versions.
  expect(parseSummary("[20,2,[0],[0]]")).toEqual({ checks: 20, refused: 2, traffic: none, refusals: none, spend: {} });
});

test.each(["", "null", "[]", "{}", "[1,2,3]"])("a damaged text is an error: %j", (text) => {
  expect(() => parseSummary(text)).toThrow();
});

test("spending is merged by unit, and units of a single instance are kept", () => {
  const part = (spend: KeySummary["spend"]): KeySummary => {
    const none = { absent: 0, items: [] };
    return { checks: 0, refused: 0, traffic: none, refusals: none, spend };
  };
  const list = (count: number) => ({ absent: 0, items: [{ key: "a", count, error: 0, refused: 0, peak: 0 }] });
  const { spend } = mergeSummaries([part({ tokens: list(5) }), part({ tokens: list(7), bytes: list(1) })], 5);
  expect(Object.entries(spend).map(([unit, { items }]) => [unit, items[0]!.count])).toEqual([
    ["tokens", 12],
    ["bytes", 1],
  ]);
});
