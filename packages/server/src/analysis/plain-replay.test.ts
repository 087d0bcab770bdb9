import type { Rule } from "sluice";
import { expect, test } from "vitest";
import type { LogRequest } from "./log/log-request.js";
import { PlainReplay } from "./plain-replay.js";
import { Simulator } from "./simulate.js";

const window = "2s";
const rules: readonly Rule[] = [
  { id: "bucket", key: ["ip"], algorithm: "token-bucket", limit: 6, window },
  { id: "gcra", match: { path: "/a/**" }, key: ["ip"], algorithm: "gcra", limit: 5, window },
  { id: "fixed", key: ["user"], algorithm: "fixed-window", limit: 7, window },
  { id: "day", key: [], algorithm: "fixed-window", limit: 900, window: "1d", align: "calendar" },
  { id: "sliding", key: ["ip"], algorithm: "sliding-counter", limit: 6, window, mode: "shadow" },
  { id: "packed", key: ["ip", "path"], algorithm: "rolling-window", limit: 5, window, minInterval: "20ms" },
  { id: "sorted", key: ["user"], algorithm: "rolling-window", storage: "sorted-set", limit: 8, window, cost: 2 },
  { id: "candidate", key: ["ip"], algorithm: "rolling-window", limit: 9, window, candidate: { limit: 4 } },
  { id: "costly", key: ["user"], algorithm: "token-bucket", limit: 40, window, cost: { attribute: "cost" } },
  {
    id: "overridden",
    match: { path: ["/a/**", "/b"] },
    key: ["user"],
    algorithm: "rolling-window",
    limit: 6,
    window: "300ms",
    overrides: [{ match: { path: "/a/**" }, limit: 4, window: "3s" }],
  },
  {
    id: "variants",
    key: ["ip"],
    algorithm: "fixed-window",
    limit: 9,
    window,
    variants: [
      { name: "a", weight: 1 },
      { name: "b", weight: 1, limit: 3 },
    ],
  },
  { id: "off", mode: "off", key: ["ip"], algorithm: "fixed-window", limit: 1, window },
] as Rule[];

function requests(seed: number, count: number): LogRequest[] {
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >> 8) % below;
  };
  let atMs = 1_795_000_000_000;
  return Array.from({ length: count }, () => {
    // Pauses, so that counters end; equal times; and sometimes a step back.
    atMs += random(50) === 0 ? random(6_000) : random(3) === 0 ? 0 : random(120) - 10;
    return {
      atMs,
      durationMs: undefined,
      method: "GET",
      target: "/",
      host: undefined,
      peer: undefined,
      headers: {},
      fields: [],
      attributes: {
        ip: `10.0.0.${random(9)}`,
        ...(random(4) > 0 && { user: `a user with a long name ${random(7)}` }),
        path: ["/a/x", "/a/y", "/b"][random(3)]!,
        // Sometimes malformed, or more than a sorted set accepts.
        ...(random(3) === 0 && { cost: ["3", "7", "x", "100000"][random(4)]! }),
      },
    };
  });
}

async function simulated(all: readonly LogRequest[], isPlain: boolean, draft = rules, against?: readonly Rule[]) {
  const attributesOf = (): never => {
    throw new Error("unmapped");
  };
  const simulator = new Simulator({
    rules: draft,
    against,
    comeBack: false,
    attributesOf,
    mayBeRecorded: () => !isPlain,
  });
  for (let from = 0; from < all.length; from += 500) await simulator.addAll(all.slice(from, from + 500));
  return await simulator.end();
}

test.each([1, 2, 3, 4])("fast and full replay give the same figures, for all algorithms (seed %i)", async (seed) => {
  const all = requests(seed, 6_000);
  const live = rules.slice(0, 1);
  const short = await simulated(all, true, rules, live);
  expect(short).toEqual(await simulated(all, false, rules, live));
  expect(short.malformed).toBeGreaterThan(100);
  expect(short.refused).toBeGreaterThan(500);
  expect(short.against?.newlyRefused).toBeGreaterThan(50);
  expect(short.rules.filter(({ refused }) => refused > 0).length).toBeGreaterThanOrEqual(4);
  for (const { total, rule } of short.rules) expect([rule, total > 500]).toEqual([rule, true]);
});

test.each(rules.filter(({ mode }) => mode !== "off").map((rule) => [rule.id, rule] as const))(
  "both ways agree under %s alone",
  async (_, rule) => {
    const all = requests(11, 3_000);
    const short = await simulated(all, true, [rule]);
    expect(short).toEqual(await simulated(all, false, [rule]));
    expect(short.rules[0]!.refused).toBeGreaterThan(10);
  },
);

const notes = { begin: () => undefined, isOver: () => true, touch: () => 0 };

test.each([
  ["places", { algorithm: "concurrency", ttl: "1s" }],
  ["turns", { algorithm: "token-bucket", window: "1s", maxWait: "1s" }],
  ["blocks", { algorithm: "fixed-window", window: "1s", blockFor: "1m" }],
  [
    "blocks of an override",
    { algorithm: "fixed-window", window: "1s", overrides: [{ match: { ip: "10.0.0.1" }, blockFor: "1m" }] },
  ],
])("rules with %s take the long way", (_, numbers) => {
  const rule = { id: "r", key: ["ip"], limit: 5, ...numbers } as Rule;
  expect(PlainReplay.of([rule], notes, 2 ** 20)).toBeUndefined();
  expect(PlainReplay.of([{ ...rule, mode: "off" } as Rule], notes, 2 ** 20)).toBeDefined();
});

test("ten times the keys that fit stay within the memory bound; a refused client is evicted last", () => {
  const rule = { id: "r", key: ["ip"], algorithm: "fixed-window", limit: 3, window: "1h" } as Rule;
  const replay = PlainReplay.of([rule], notes, 2 ** 20)!;
  const ask = (ip: string): boolean => {
    replay.decide({ ip }, 1_795_000_000_000);
    return replay.allowed;
  };
  expect(Array.from({ length: 5 }, () => ask("busy"))).toEqual([true, true, true, false, false]);
  for (let i = 0; i < 45_000; i++) ask(`made up ${i}`);
  // About 4 500 counters fit into a megabyte.
  expect(replay.evicted).toBeGreaterThan(40_000);
  expect(replay.evicted).toBeLessThan(42_000);
  expect(ask("busy")).toBe(false);
});

test("ended counters are dropped without being counted as evicted", () => {
  const rule = { id: "r", key: ["ip"], algorithm: "token-bucket", limit: 3, window: "1s" } as Rule;
  let begun = 0;
  const counted = { ...notes, begin: () => begun++ };
  const replay = PlainReplay.of([rule], counted, 2 ** 24)!;
  for (let i = 0; i < 100_000; i++) replay.decide({ ip: `client ${i}` }, 1_795_000_000_000 + i);
  expect([begun, replay.evicted]).toEqual([100_000, 0]);
});
