import { expect, test } from "vitest";
import { parseFailIf } from "./fail-if.js";
import type { Simulation } from "./simulate.js";

const simulation = {
  total: 2_000,
  refused: 3,
  against: { newlyRefused: 2, newlyAdmitted: 0 },
  unmatched: 10,
} as unknown as Simulation;

test.each([
  ["newlyRefused > 0.1%", false],
  ["newlyRefused >= 0.1%", true],
  ["newlyRefused > 1", true],
  ["refused<3", false],
  ["refused<=3", true],
  ["newlyAdmitted == 0", true],
  ["unmatched > 0.4 %", true],
])("%s: %s", (text, holds) => {
  expect(parseFailIf(text).holds(simulation)).toBe(holds);
});

test("in an empty log every share is 0", () => {
  expect(parseFailIf("refused > 0%").holds({ ...simulation, total: 0, refused: 0 })).toBe(false);
});

test.each(["", "newlyRefused", "constructor > 1", "refused > many", "refused >> 1", "refused > 1 || true"])(
  "%j is refused, with what was expected",
  (text) => {
    expect(() => parseFailIf(text)).toThrow(/fail-if: expected one of refused, newlyRefused/);
  },
);

test("reports what it needs in addition to the log", () => {
  expect(parseFailIf("newlyRefused > 1")).toMatchObject({ needsAgainst: true, needsComeBack: false });
  expect(parseFailIf("gaveUp > 1")).toMatchObject({ needsAgainst: false, needsComeBack: true });
});
