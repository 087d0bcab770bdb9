/**
 * Ids that meet other rules: those of another limiter on the same store, and those of an edit between a request and its retry. A limiter
 * whose rules are set under the version that it has is another limiter, to the store; under another version it is one that was edited.
 */
import type { Rule } from "sluice";
import { passes, type Schedule, type Step } from "./schedule.js";

const all = { id: "global", key: [], algorithm: "fixed-window", limit: 1_000, window: "365d" } satisfies Rule;
const perUser = { ...all, id: "per-user", key: ["user"] };
const login = { id: "login", key: ["user"], algorithm: "rolling-window", limit: 1, window: "1d" } satisfies Rule;
const perPath = { ...perUser, key: ["path"] };

type Counting = Rule & { readonly limit: number };

const asked = { user: "ann", path: "/x" };
const SAME = 1;
const remains = (remaining: readonly number[]): Step => ({
  peek: asked,
  cost: 0,
  gives: { checks: remaining.map((left) => ({ remaining: left })) },
});

const others: readonly { name: string; first: Counting[]; later: Counting[] }[] = [
  { name: "other rules, counted elsewhere", first: [all], later: [login] },
  { name: "other rules, counted beside them", first: [perUser], later: [login] },
  { name: "one rule more", first: [perUser], later: [perUser, login] },
  { name: "one rule more, counted elsewhere", first: [all], later: [all, login] },
  { name: "one rule less", first: [perUser, all], later: [all] },
  { name: "a rule of the same name that counts by another key", first: [perUser], later: [perPath] },
];

const edits: readonly { name: string; first: Counting[]; later: Counting[] }[] = [
  { name: "a rule was added", first: [perUser], later: [perUser, login] },
  { name: "a rule was added that counts elsewhere", first: [perUser], later: [perUser, all] },
  { name: "a rule was removed", first: [perUser, all], later: [perUser] },
  { name: "a rule counts by another key", first: [perUser], later: [perPath] },
  { name: "a rule counts by another key, and another was added", first: [perUser, all], later: [login, perPath] },
];

export const ids: Schedule[] = [
  ...others.map(
    ({ name, first, later }): Schedule => ({
      name: `an id that another limiter was sent is a mistake, and charges nothing: ${name}`,
      rules: first,
      steps: [
        { check: asked, id: "one", gives: passes(999) },
        { setRules: later, version: SAME },
        { check: asked, id: "one", rejects: "invalid-request" },
        { all: [{ attributes: asked }], id: "one", rejects: "invalid-request" },
        { setRules: first, version: SAME },
        { check: asked, id: "one", gives: passes(999) },
        { all: [{ attributes: asked }], id: "two", gives: passes(998), parts: [] },
        { setRules: later, version: SAME },
        { all: [{ attributes: asked }], id: "two", rejects: "invalid-request" },
        ...[login, perPath].flatMap((rule): Step[] => [{ setRules: [rule], version: SAME }, remains([rule.limit])]),
        // The first charge is found by its id, all of it.
        { refundId: "one", gives: true },
        { refundId: "one", gives: false },
        { refundId: "two", gives: true },
        { setRules: first, version: SAME },
        remains(first.map(({ limit }) => limit)),
      ],
    }),
  ),
  ...edits.map(
    ({ name, first, later }): Schedule => ({
      name: `a retry gets the first decision, and charges nothing, where meanwhile ${name}`,
      rules: first,
      steps: [
        { check: asked, id: "one", gives: { ...passes(999), checks: first.map(({ id }) => ({ rule: id })) } },
        { setRules: later },
        { check: asked, id: "one", gives: { ...passes(999), rulesVersion: 1 } },
        { peek: asked, id: "one", gives: { ...passes(999), rulesVersion: 1 } },
        { all: [{ attributes: asked }], id: "one", gives: { ...passes(999), rulesVersion: 1 }, parts: [] },
        // An instance that has not heard of the edit yet.
        { setRules: first, version: 1 },
        { check: asked, id: "one", gives: { ...passes(999), rulesVersion: 1 } },
        remains(first.map(({ limit }) => limit - 1)),
        { setRules: later, version: 2 },
        { refundId: "one", gives: true },
        { refundId: "one", gives: false },
        remains(later.map(({ limit }) => limit)),
        // Free, for the rules in force.
        { check: asked, id: "one", gives: { allowed: true, rulesVersion: 2 } },
        remains(later.map(({ limit }) => limit - 1)),
        { setRules: first, version: 1 },
        { check: asked, id: "one", gives: { allowed: true, rulesVersion: 2 } },
        { refundId: "one", gives: true },
        remains(first.map(({ limit }) => limit)),
      ],
    }),
  ),
  {
    name: "an id that was sent to rules none of which is left is a mistake, whatever their version",
    rules: [perUser],
    steps: [
      { check: asked, id: "one", gives: passes(999) },
      { setRules: [all, login] },
      { check: asked, id: "one", rejects: "invalid-request" },
      remains([1_000, 1]),
    ],
  },
  {
    name: "a retry of a refused request is refused where the refusing rule was removed",
    rules: [login, perPath],
    steps: [
      { check: { user: "bob", path: "/x" }, cost: 1_000, id: "full", gives: { allowed: false, violated: ["login"] } },
      { setRules: [perPath] },
      { check: { user: "bob", path: "/x" }, cost: 1_000, id: "full", gives: { allowed: false, violated: ["login"] } },
      { peek: asked, cost: 0, gives: { checks: [{ remaining: 1_000 }] } },
    ],
  },
  {
    name: "a retry of a refused request is refused where a rule was added that would pass",
    rules: [login, all],
    steps: [
      { check: asked, gives: { allowed: true } },
      { check: asked, id: "one", gives: { allowed: false, violated: ["login"] } },
      { setRules: [{ ...login, limit: 9 }, all, perPath] },
      { check: asked, id: "one", gives: { allowed: false, violated: ["login"], rulesVersion: 1 } },
      remains([8, 999, 1_000]),
    ],
  },
];
