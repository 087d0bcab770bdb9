/** Reservations, for every algorithm that counts units; and those of several rules, in several slots of a cluster. */
import type { Rule } from "sluice";
import { expect } from "vitest";
import { nameOf, passes, refuses, type Schedule, short, threeAYear, user } from "./schedule.js";

const settled = (charged: Record<string, number>, overrun: Record<string, number> = {}): Record<string, unknown> => ({
  settled: true,
  charged,
  overrun,
});

const tokens = {
  id: "user-tokens",
  key: ["user"],
  algorithm: "fixed-window",
  limit: 1_000,
  window: "365d",
  cost: { attribute: "units" },
  estimate: { default: 200 },
} satisfies Rule;

/** Reservations, for every algorithm that counts units. */
export const reservations: Schedule[] = threeAYear
  .filter(({ algorithm }) => algorithm !== "concurrency")
  .flatMap((rule): Schedule[] => {
    const estimated = { ...rule, limit: 100, cost: { attribute: "units" }, estimate: { default: 40 } } as Rule;
    const stopping = { ...estimated, estimate: { default: 40, overrun: "stop" } } as Rule;
    // A bucket gives back what its refill has not paid, rounded down: in real time a fraction of a unit may stay charged.
    const isBucket = rule.algorithm === "token-bucket" || rule.algorithm === "gcra";
    const all: unknown = isBucket ? expect.toBeOneOf([99, 100]) : 100;
    return [
      {
        name: `${nameOf(rule)}: an estimate is held, the real cost settled once, and a cancelled one given back`,
        rules: [estimated],
        steps: [
          { check: user, gives: { ...passes(60), reservation: { held: { r: 40 } } } },
          { check: user, gives: { ...passes(20), reservation: { held: { r: 40 } } } },
          { check: user, gives: { allowed: false, remaining: 20, reason: "limit" } },
          { settle: 0, costs: { units: 10 }, gives: settled({ r: 10 }) },
          { settle: 0, costs: { units: 90 }, gives: settled({ r: 10 }) },
          { cancel: 0, gives: settled({ r: 10 }) },
          { peek: user, cost: 0, gives: { remaining: 50 } },
          { cancel: 1, gives: settled({ r: 0 }) },
          { peek: user, cost: 0, gives: { remaining: 90 } },
          { check: { ...user, units: 30 }, gives: passes(60) },
        ],
      },
      {
        name: `${nameOf(rule)}: a request that cost more than was held leaves a debt`,
        rules: [estimated],
        steps: [
          { check: user, gives: passes(60) },
          { settle: 0, costs: { units: 130 }, gives: settled({ r: 130 }, { r: 90 }) },
          { check: user, gives: { ...refuses(), debt: 30 } },
          { settle: 0, costs: { units: 130 }, gives: settled({ r: 130 }, { r: 90 }) },
          { peek: user, cost: 0, gives: { debt: 30 } },
        ],
      },
      {
        name: `${nameOf(rule)}: an extension holds up to so much in all, and is refused where nothing is left`,
        rules: [stopping],
        steps: [
          { check: user, gives: passes(60) },
          { extend: 0, costs: { units: 70 }, gives: { ...passes(30), reservation: { held: { r: 70 } } } },
          { extend: 0, costs: { units: 70 }, gives: { ...passes(30), reservation: { held: { r: 70 } } } },
          { extend: 0, costs: { units: 101 }, gives: { allowed: false, remaining: 30, reason: "limit" } },
          { peek: user, cost: 0, gives: { remaining: 30 } },
          { settle: 0, costs: { units: 45 }, gives: settled({ r: 45 }) },
          { peek: user, cost: 0, gives: { remaining: 55 } },
        ],
      },
      {
        name: `${nameOf(rule)}: what a reservation charges after an edit is charged by the new numbers, and loses nothing that they count`,
        rules: [{ ...estimated, window: short } as Rule],
        steps: [
          { check: user, gives: passes(60) },
          { setRules: [estimated] },
          { charge: { ...user, units: 50 }, gives: { allowed: true } },
          { wait: 2_100 },
          { settle: 0, costs: { units: 41 }, gives: settled({ r: 41 }, { r: 1 }) },
          // What was held may have left the short window before the edit.
          { peek: user, cost: 0, gives: { remaining: expect.toBeOneOf(Array.from({ length: 60 }, (_, i) => i)) } },
        ],
      },
      {
        name: `${nameOf(rule)}: a reservation beside a reset, a refund and a repeated id`,
        rules: [estimated],
        steps: [
          { check: user, gives: passes(60) },
          { reset: "r", attributes: user },
          { wait: 2 },
          { check: user, id: "held", gives: passes(60) },
          { settle: 0, costs: { units: 1 }, gives: settled({ r: 1 }) },
          { check: user, id: "held", gives: { ...passes(60), reservation: { held: { r: 40 } } } },
          { refundId: "held", gives: true },
          { peek: user, cost: 0, gives: { remaining: all } },
          { settle: 1, costs: { units: 30 }, gives: settled({ r: 0 }) },
          { peek: user, cost: 0, gives: { remaining: all } },
        ],
      },
    ];
  });

/** Rules of one request, in several slots of a cluster. */
export const reservedTogether: Schedule[] = [
  {
    name: "tokens by user and by organisation, requests and places are reserved together or not at all",
    rules: [
      { id: "places", key: ["org"], algorithm: "concurrency", limit: 2, ttl: "365d" },
      { id: "requests", key: ["user"], algorithm: "fixed-window", limit: 3, window: "365d" },
      {
        id: "user-tokens",
        key: ["user"],
        algorithm: "gcra",
        limit: 50,
        window: "365d",
        cost: { attribute: "units" },
        estimate: { default: 20 },
      },
      {
        id: "org-tokens",
        key: ["org"],
        algorithm: "token-bucket",
        limit: 70,
        window: "365d",
        cost: { attribute: "units" },
        estimate: { default: 25 },
        candidate: { limit: 30 },
      },
      {
        id: "input",
        key: [],
        algorithm: "fixed-window",
        limit: 1000,
        window: "365d",
        mode: "shadow",
        cost: { attribute: "input" },
        estimate: { default: 5 },
      },
    ],
    steps: [
      {
        check: { user: "ann", org: "o" },
        gives: { allowed: true, reservation: { held: { "user-tokens": 20, "org-tokens": 25, input: 5 } } },
      },
      { release: 0, gives: true },
      { check: { user: "ann", org: "o" }, gives: { allowed: true } },
      { check: { user: "bob", org: "o" }, gives: { allowed: false, violated: ["org-tokens"] } },
      {
        peek: { user: "bob", org: "o" },
        cost: 0,
        gives: { checks: [{}, { remaining: 3 }, { remaining: 50 }, {}, {}, {}] },
      },
      {
        settle: 0,
        costs: { units: 10 },
        gives: settled({ "user-tokens": 10, "org-tokens": 10, input: 5 }),
      },
      {
        settle: 1,
        costs: { units: 30, input: 7 },
        gives: settled(
          { "user-tokens": 30, "org-tokens": 30, input: 7 },
          { "user-tokens": 10, "org-tokens": 5, input: 2 },
        ),
      },
      {
        peek: { user: "ann", org: "o" },
        cost: 0,
        gives: { checks: [{}, { remaining: 1 }, { remaining: 10 }, { remaining: 30 }, {}, { remaining: 988 }] },
      },
    ],
  },
  ...(["finish", "stop"] as const).map((overrun): Schedule => {
    const sortedSet = { algorithm: "rolling-window", storage: "sorted-set", limit: 20_000, window: "365d" } as const;
    const rule: Rule = {
      ...sortedSet,
      id: "r",
      key: ["user"],
      cost: { attribute: "units" },
      estimate: { default: 40, overrun },
    };
    const refused = { allowed: false, remaining: 19_960, reason: "cost-exceeds-limit" };
    const held = { ...passes(15_000), reservation: { held: { r: 5_000 } } };
    return {
      name: `a reservation holds at most 5000 entries of a sorted set, for each is removed on its own (overrun: ${overrun})`,
      rules: [rule],
      steps: [
        { check: user, gives: passes(19_960) },
        { extend: 0, costs: { units: 6_000 }, gives: overrun === "stop" ? refused : held },
        {
          settle: 0,
          costs: { units: 6_000 },
          gives: settled({ r: 6_000 }, { r: overrun === "stop" ? 5_960 : 1_000 }),
        },
        { peek: user, cost: 0, gives: { remaining: 14_000 } },
      ],
    };
  }),
  {
    name: "what is held is that of the override, of the variant and of the candidate, and is settled there",
    rules: [
      {
        ...tokens,
        id: "org-tokens",
        key: ["org"],
        candidate: { limit: 250 },
        overrides: [{ match: { org: "small" }, limit: 100 }],
        variants: [{ name: "only", weight: 1, algorithm: "rolling-window", window: "365d" }],
      } as Rule,
      { ...tokens, id: "user-tokens", limit: 150, mode: "shadow" },
    ],
    steps: [
      {
        check: { user: "ann", org: "small" },
        gives: {
          reservation: { held: { "org-tokens": 100, "user-tokens": 150 } },
          checks: [{ variant: "only", remaining: 0 }, { mode: "candidate", remaining: 0 }, { remaining: 0 }],
        },
      },
      {
        extend: 0,
        costs: { units: 120 },
        gives: { allowed: true, reservation: { held: { "org-tokens": 120, "user-tokens": 150 } } },
      },
      {
        settle: 0,
        costs: { units: 40 },
        gives: settled({ "org-tokens": 40, "user-tokens": 40 }),
      },
      {
        peek: { user: "ann", org: "small" },
        cost: 0,
        gives: { checks: [{ limit: 100, remaining: 60 }, { limit: 100, remaining: 60 }, { remaining: 110 }] },
      },
      // Another key is under none of the override's numbers.
      {
        check: { user: "bob", org: "large" },
        gives: { reservation: { held: { "org-tokens": 200, "user-tokens": 150 } } },
      },
      { cancel: 1, gives: settled({ "org-tokens": 0, "user-tokens": 0 }) },
      {
        peek: { user: "bob", org: "large" },
        cost: 0,
        gives: { checks: [{ remaining: 1_000 }, { remaining: 250 }, { remaining: 150 }] },
      },
    ],
  },
  {
    name: "parts that meet at one counter hold what it could bear, and are settled together",
    rules: [
      { ...tokens, limit: 250 },
      { ...tokens, id: "org-tokens", key: ["org"], limit: 1_000 },
    ],
    steps: [
      {
        all: [{ attributes: { user: "ann", org: "o" } }, { attributes: { user: "ann", org: "p", units: 30 } }],
        gives: { allowed: true, reservation: { held: { "user-tokens": 230, "org-tokens": 200 } } },
        parts: [],
      },
      { settle: 0, costs: { units: 90 }, gives: settled({ "user-tokens": 90, "org-tokens": 90 }) },
      { peek: { user: "ann", org: "p" }, cost: 0, gives: { checks: [{ remaining: 160 }, { remaining: 970 }] } },
      {
        all: [{ attributes: { user: "bob", org: "o" } }, { attributes: { user: "bob", org: "o" } }],
        gives: { allowed: true, reservation: { held: { "user-tokens": 250, "org-tokens": 400 } } },
        parts: [],
      },
      { cancel: 1, gives: settled({ "user-tokens": 0, "org-tokens": 0 }) },
      { peek: { user: "bob", org: "o" }, cost: 0, gives: { checks: [{ remaining: 250 }, { remaining: 910 }] } },
    ],
  },
  {
    name: "a reservation that is not settled by its end stands as spent",
    rules: [
      {
        id: "r",
        key: ["user"],
        algorithm: "token-bucket",
        limit: 100,
        window: "365d",
        cost: { attribute: "units" },
        estimate: { default: 40, ttl: "1s" },
      },
    ],
    steps: [
      { check: user, gives: passes(60) },
      { wait: 1_020 },
      {
        settle: 0,
        costs: { units: 1 },
        gives: { settled: false, charged: { r: 40 }, overrun: {}, reason: "expired" },
      },
      { peek: user, cost: 0, gives: { remaining: 60 } },
    ],
  },
];
