import { expect, test } from "vitest";
import { type Marker, placeMarkers } from "./markers.js";

const at = (atMs: number): Marker => ({ atMs, kind: "rules", label: String(atMs), href: "/" });

test("markers are placed by time, merged if too close, and dropped outside the chart", () => {
  const timesMs = Array.from({ length: 11 }, (_, i) => 1_000 + i * 100);
  const placed = placeMarkers([999, 1_000, 1_500, 1_505, 2_080, 2_200].map(at), timesMs);
  expect(placed.map(({ at: where, markers }) => [where, markers.length])).toEqual([
    [0, 1],
    [0.5, 2],
    // In the last step, which starts where the chart ends.
    [1, 1],
  ]);
});
