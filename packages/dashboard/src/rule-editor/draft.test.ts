import { expect, test } from "vitest";
import { listOf, matchOf, matchRows, numberOrText, pathInRule, valueAt, withAlgorithm, withValue } from "./draft.js";

const draft = { id: "a", key: ["user"], algorithm: "rolling-window", limit: 5, window: "1m" };

test("a field that is typed into stays in its place, and one that is emptied goes", () => {
  expect(Object.keys(withValue(draft, ["limit"], 7))).toEqual(["id", "key", "algorithm", "limit", "window"]);
  expect(withValue(draft, ["window"], undefined)).toEqual({
    id: "a",
    key: ["user"],
    algorithm: "rolling-window",
    limit: 5,
  });
});

test("a nested field brings its object, and takes it away when it was the last", () => {
  const withCandidate = withValue(draft, ["candidate", "limit"], 3);
  expect(valueAt(withCandidate, ["candidate", "limit"])).toBe(3);
  expect(withValue(withCandidate, ["candidate", "limit"], undefined)).toEqual(draft);
});

test("an item of a list is changed in its place, and the others are kept", () => {
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

test("what is no number stays as it was typed, for the service to name the mistake", () => {
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

test("a match goes into rows and comes back", () => {
  const match = { path: "/v1/**", method: ["GET", "POST"] };
  expect(matchOf(matchRows(match))).toEqual(match);
  expect(matchOf([{ name: " ", values: "x" }])).toBeUndefined();
  expect(listOf(" user, ,tier ")).toEqual(["user", "tier"]);
});

test("another algorithm keeps what it knows and drops what it does not", () => {
  const spaced = { ...draft, minInterval: "50ms", storage: "packed" };
  expect(withAlgorithm(spaced, "gcra")).toEqual({ ...draft, algorithm: "gcra" });
  const places = withAlgorithm(spaced, "concurrency");
  expect(places).toEqual({ id: "a", key: ["user"], algorithm: "concurrency", limit: 5 });
  expect(withAlgorithm(places, "fixed-window")).toMatchObject({ window: "1m" });
});

test("load shedding drops what counts, and another algorithm drops what sheds", () => {
  const shed = withAlgorithm({ ...draft, candidate: { limit: 1 }, onStoreFailure: "deny" }, "load-shedding");
  expect(shed).toEqual({ id: "a", key: [], algorithm: "load-shedding", signal: ["inflight"], limit: "auto" });
  expect(withAlgorithm(shed, "gcra")).toEqual({ id: "a", key: [], algorithm: "gcra", limit: 100, window: "1m" });
});

test("a mistake's path is told within the rule", () => {
  expect(["rules[12].limit", "rules[0].overrides[1].match.user", "rules[3]"].map(pathInRule)).toEqual([
    "limit",
    "overrides[1].match.user",
    "",
  ]);
});
