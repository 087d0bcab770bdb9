import fc from "fast-check";
import { expect, test } from "vitest";
import { addCounts, addPacked, packCounts, unpackCounts } from "./packed-counts.js";

const names = ["allowed", "refused", "candidateRefused", "latency00", "latency13", "use09", "seconds"] as const;
const counts = fc.dictionary(fc.constantFrom(...names), fc.integer({ min: 1, max: 1e12 }));

test("counts survive being packed and unpacked", () => {
  expect(packCounts({ allowed: 12, refused: 3, latency04: 15 })).toBe("a=12 r=3 l04=15");
  fc.assert(
    fc.property(counts, (given) => {
      expect(unpackCounts(packCounts(given))).toEqual({ ...given });
    }),
  );
});

test("adding packed texts equals adding their counts", () => {
  fc.assert(
    fc.property(counts, counts, (one, other) => {
      const packed: Record<string, number> = {};
      addPacked(packed, packCounts(one));
      addPacked(packed, packCounts(other));
      const plain: Record<string, number> = {};
      addCounts(plain, one);
      addCounts(plain, other);
      expect(packed).toEqual(plain);
    }),
  );
});

test("empty counts, zeros and unknown names take no space and are ignored", () => {
  expect(packCounts({ allowed: 0, ...({ future: 5 } as object) })).toBe("");
  expect(unpackCounts("")).toEqual({});
  expect(unpackCounts("zz=9 a=1")).toEqual({ allowed: 1 });
});

test("a truncated text counts up to the cut", () => {
  expect(unpackCounts("a=12 r")).toEqual({ allowed: 12 });
});
