import { expect, test } from "vitest";
import type { StoreNode } from "../views/store.js";
import { storeDegraded, storeMemory } from "./store-findings.js";

const healthy = {
  isDegraded: false,
  failingSinceMs: undefined,
  lastError: undefined,
  degradedElsewhere: 0,
  lastMinute: undefined,
  nowMs: 10_000,
};

test("one late call only holds; three seconds of them, another instance, or a hundredth of a minute's requests fire", () => {
  const levelOf = (given: Partial<Parameters<typeof storeDegraded>[0]>) =>
    storeDegraded({ ...healthy, ...given })?.level;
  expect(levelOf({})).toBeUndefined();
  const failingSince = (failingSinceMs: number | undefined) => levelOf({ isDegraded: true, failingSinceMs });
  expect([failingSince(undefined), failingSince(7_001), failingSince(7_000)]).toEqual(["hold", "hold", "fire"]);
  expect(levelOf({ degradedElsewhere: 1 })).toBe("fire");
  const lastMinute = (degraded: number, requests: number) => levelOf({ lastMinute: { degraded, requests } });
  expect([lastMinute(19, 100), lastMinute(20, 2_001), lastMinute(20, 2_000)]).toEqual([undefined, undefined, "fire"]);
});

test("the summary counts the instances and names the cause", () => {
  const found = storeDegraded({ ...healthy, isDegraded: true, degradedElsewhere: 2, lastError: "ECONNREFUSED" });
  expect(found!.summary).toBe("the store does not answer on 3 instances: ECONNREFUSED");
});

const node = (given: Partial<StoreNode> = {}): StoreNode => ({ address: "n1", role: "leader", state: "up", ...given });
const memory = (nodes: readonly StoreNode[], { evictedBefore = new Map<string, number>(), oomSeen = false } = {}) =>
  storeMemory({ nodes }, { evictedBefore, oomSeen }).map(
    ({ level, severity, subject }) => `${level} ${severity} ${subject}`,
  );

test("memory: 85 % holds, 90 % fires, 100 % without eviction is critical", () => {
  const at = (usedBytes: number, maxMemoryPolicy?: string) =>
    memory([node({ usedBytes, maxBytes: 100, ...(maxMemoryPolicy && { maxMemoryPolicy }) })]);
  expect([at(84), at(85), at(90), at(100), at(100, "allkeys-lru")]).toEqual([
    [],
    ["hold warning store-memory:n1"],
    ["fire warning store-memory:n1"],
    ["fire critical store-memory:n1"],
    ["fire warning store-memory:n1"],
  ]);
});

test("evictions since the last round are critical; earlier ones are not", () => {
  const evicting = [node({ evictedKeys: 5 })];
  expect(memory(evicting)).toEqual([]);
  expect(memory(evicting, { evictedBefore: new Map([["n1", 5]]) })).toEqual([]);
  expect(memory(evicting, { evictedBefore: new Map([["n1", 4]]) })).toEqual(["fire critical store-memory:n1"]);
});

test("a full Redis whose memory cannot be read is detected by its refusals; without a limit it is never full", () => {
  expect(memory([node()], { oomSeen: true })).toEqual(["fire critical store-memory"]);
  expect(memory([node({ usedBytes: 1e12, maxBytes: 0 })])).toEqual([]);
  expect(memory([node({ role: "replica", usedBytes: 100, maxBytes: 100 })])).toEqual([]);
});
