import { expect, test } from "vitest";
import { SeenAttributes } from "./seen-attributes.js";

const DAY_S = 86_400;

function passSeconds(seen: SeenAttributes, seconds: number): void {
  for (let i = 0; i < seconds; i++) seen.nextSecond();
}

test("the first 64 requests of a second are sampled, then one in 16", () => {
  const seen = new SeenAttributes();
  for (let i = 0; i < 64; i++) seen.add({ user: "1" });
  for (let i = 0; i < 15; i++) seen.add({ missed: "1" });
  expect(seen.names).toEqual(["user"]);
  seen.add({ sixteenth: "1" });
  expect(seen.names).toEqual(["sixteenth", "user"]);
  seen.nextSecond();
  seen.add({ fresh: "1" });
  expect(seen.names).toContain("fresh");
});

test("a name is kept for the current day and the next", () => {
  const seen = new SeenAttributes();
  seen.add({ old: "1" });
  passSeconds(seen, 2 * DAY_S - 1);
  expect(seen.names).toEqual(["old"]);
  passSeconds(seen, 1);
  expect(seen.names).toEqual([]);
});

test("256 names are kept; one more marks the set incomplete for as long as that name would have been kept", () => {
  const seen = new SeenAttributes();
  const names = (from: number, to: number) =>
    Object.fromEntries(Array.from({ length: to - from }, (_, i) => [`n${from + i}`, "1"]));
  seen.add(names(0, 256));
  expect([seen.names.length, seen.isComplete]).toEqual([256, true]);
  seen.add(names(255, 257));
  expect([seen.names.length, seen.isComplete]).toEqual([256, false]);
  passSeconds(seen, DAY_S);
  expect(seen.isComplete).toBe(false);
  passSeconds(seen, DAY_S);
  expect(seen.isComplete).toBe(true);
});

test("a name of more than 128 characters is not kept, and makes the set incomplete", () => {
  const seen = new SeenAttributes();
  seen.add({ ["x".repeat(128)]: "1" });
  expect(seen.isComplete).toBe(true);
  seen.add({ ["y".repeat(129)]: "1" });
  expect([seen.names.length, seen.isComplete]).toEqual([1, false]);
});
