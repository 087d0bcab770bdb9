import { expect, test } from "vitest";
import { listOf, matchOf, matchRows, numberOrText, pathInRule, valueAt, withAlgorithm, withValue } from "./draft.js";

const draft = { id: "a", key: ["user"], algorithm: "rolling-window", limit: 5, window: "1m" };

test("an edited field keeps its position, and an emptied one is removed", () => {
  expect(Object.keys(withValue(draft, ["limit"], 7))).toEqual(["id", "key", "algorithm", "limit", "window"]);
  expect(withValue(draft, ["window"], undefined)).toEqual({
    id: "a",
    key: ["user"],
    algorithm: "rolling-window",
    limit: 5,
  });
});

test("a nested field creates its object, and the last one removed removes it", () => {
  const withCandidate = withValue(draft, ["candidate", "limit"], 3);
  expect(valueAt(withCandidate, ["candidate", "limit"])).toBe(3);
  expect(withValue(withCandidate, ["candidate", "limit"], undefined)).toEqual(draft);
});

test("a list item is changed in place, and the others are kept", () => {
  const overridden = {
    ...draft,
    overrides: [
      { match: { user: "a" }, limit: 1 },
      { match: { user: "b" }, limit: 2 },
    ],
  };
  expect(withValue(overridden, ["overrides", 1, "limit"], 9).overrides).toEqual([
    { match: { user: "a" }, limit: 1 },
    { match: { user: "b" }, limit: 9 },
  ]);
});

test("an invalid number stays as typed, so that the service can report it", () => {
  expect(["12", " 12 ", "-1", "1.5", "12x", "", "1e9", "9".repeat(20)].map(numberOrText)).toEqual([
    12,
    12,
    -1,
    1.5,
    "12x",
    undefined,
    "1e9",
    "9".repeat(20),
  ]);
});

test("a match survives the round trip through rows", () => {
  const match = { path: "/v1/**", method: ["GET", "POST"] };
  expect(matchOf(matchRows(match))).toEqual(match);
  expect(matchOf([{ name: " ", values: "x" }])).toBeUndefined();
  expect(listOf(" user, ,tier ")).toEqual(["user", "tier"]);
});

test("another algorithm keeps the fields it knows and drops the others", () => {
  const spaced = { ...draft, minInterval: "50ms", storage: "packed" };
  expect(withAlgorithm(spaced, "gcra")).toEqual({ ...draft, algorithm: "gcra" });
  const places = withAlgorithm(spaced, "concurrency");
  expect(places).toEqual({ id: "a", key: ["user"], algorithm: "concurrency", limit: 5 });
  expect(withAlgorithm(places, "fixed-window")).toMatchObject({ window: "1m" });
});

test("load shedding drops counting fields, and a counting algorithm drops load-shedding fields", () => {
  const shed = withAlgorithm({ ...draft, candidate: { limit: 1 }, onStoreFailure: "deny" }, "load-shedding");
  expect(shed).toEqual({ id: "a", key: [], algorithm: "load-shedding", signal: ["inflight"], limit: "auto" });
  expect(withAlgorithm(shed, "gcra")).toEqual({ id: "a", key: [], algorithm: "gcra", limit: 100, window: "1m" });
});

test("a mistake's path is relative to the rule", () => {
  expect(["rules[12].limit", "rules[0].overrides[1].match.user", "rules[3]"].map(pathInRule)).toEqual([
    "limit",
    "overrides[1].match.user",
    "",
  ]);
});
