import { expect, test } from "vitest";
import { validateRules } from "./validate-rules.js";

const good = { id: "s", key: [], algorithm: "load-shedding", signal: ["inflight", "event-loop"], limit: "auto" };
const withClasses = { class: { attribute: "c", default: "low" }, classes: { low: 0.8, high: 1.5 } };

function linesOf(rule: object): string[] {
  const outcome = validateRules([rule]);
  return "mistakes" in outcome ? outcome.mistakes.map(({ path, message }) => `${path}: ${message}`) : [];
}

test.each([
  ["estimated places", good],
  ["given places", { ...good, limit: 64 }],
  ["one signal as a word", { ...good, signal: "inflight" }],
  ["no places where none are counted", { ...good, signal: ["reported"], limit: undefined }],
  ["classes of its own", { ...good, ...withClasses, fairBy: "tenant", mode: "shadow", key: ["upstream"] }],
  ["the usual classes", { ...good, class: { attribute: "criticality", default: "normal" } }],
])("%s is accepted", (_, rule) => {
  expect(linesOf(rule)).toEqual([]);
});

test.each([
  ["no signal", { ...good, signal: undefined }, /^rules\[0\]\.signal: expected inflight, event-loop or reported/],
  ["an unknown signal", { ...good, signal: "cpu" }, /^rules\[0\]\.signal: expected one of "inflight"/],
  ["an empty list of signals", { ...good, signal: [] }, /signal: expected at least one value/],
  ["a signal twice", { ...good, signal: ["inflight", "inflight"] }, /signal\[1\]: expected each signal once/],
  [
    "no places for inflight",
    { ...good, limit: undefined },
    /limit: expected places for requests in flight .* got nothing/,
  ],
  ["no room at all", { ...good, limit: 0 }, /limit: expected /],
  ["another word than auto", { ...good, limit: "automatic" }, /limit: expected a whole number/],
  [
    "places that nothing counts",
    { ...good, signal: "event-loop" },
    /limit: has a meaning only with the signal inflight/,
  ],
  [
    "classes without a class",
    { ...good, classes: { low: 1 } },
    /class: expected \{attribute, default\} beside classes/,
  ],
  ["no classes at all", { ...good, ...withClasses, classes: {} }, /classes: expected an object of at least one class/],
  [
    "a threshold of 0",
    { ...good, ...withClasses, classes: { low: 0 } },
    /classes\.low: expected a utilisation above 0/,
  ],
  [
    "a threshold that is text",
    { ...good, ...withClasses, classes: { low: "1" } },
    /classes\.low: expected a utilisation/,
  ],
  ["a threshold without an end", { ...good, ...withClasses, classes: { low: Infinity } }, /classes\.low: expected/],
  [
    "an unknown default class",
    { ...good, ...withClasses, class: { attribute: "c", default: "lo" } },
    /class\.default: expected one of the classes low, high, got "lo"/,
  ],
  [
    "a class without a default",
    { ...good, ...withClasses, class: { attribute: "c" } },
    /class\.default: expected a class name/,
  ],
  [
    "a class name with a space",
    { ...good, ...withClasses, classes: { low: 1, "a b": 1 } },
    /classes\["a b"\]: expected a class name/,
  ],
  ["a window", { ...good, window: "1m" }, /^rules\[0\]\.window: load-shedding has no window/],
  ["a cost", { ...good, cost: 2 }, /^rules\[0\]\.cost: load-shedding has no cost/],
  ["a candidate", { ...good, candidate: { limit: 1 } }, /candidate: load-shedding has no candidate/],
  ["variants", { ...good, variants: [{ name: "a", weight: 1 }] }, /variants: load-shedding has no variants/],
  [
    "overrides",
    { ...good, key: ["u"], overrides: [{ match: { u: "x" }, limit: 1 }] },
    /overrides: load-shedding has no/,
  ],
  ["a failure policy", { ...good, onStoreFailure: "deny" }, /onStoreFailure: load-shedding has no onStoreFailure/],
])("%s is one clear mistake", (_, rule, line) => {
  const lines = linesOf(rule);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(line);
});

const counting = { id: "c", key: [], algorithm: "fixed-window", limit: 1, window: "1s" };

test.each([
  [
    "a field of load shedding",
    { ...counting, fairBy: "tenant" },
    "fairBy: fixed-window has no fairBy (only load-shedding)",
  ],
  ["an estimated limit", { ...counting, limit: "auto" }, "(only load-shedding estimates its limit)"],
  [
    "a candidate that sheds",
    { ...counting, candidate: { algorithm: "load-shedding" } },
    "candidate.algorithm: expected an algorithm that counts",
  ],
])("on a rule that counts, %s is one clear mistake", (_, rule, part) => {
  const lines = linesOf(rule);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(part);
});
