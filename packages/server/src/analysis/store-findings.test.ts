import { describe, expect, test } from "vitest";
import { parseInfo } from "../monitoring/store-view/node-report.js";
import { storeFindings } from "./store-findings.js";

const healthy = {
  redis_version: "7.0.15",
  role: "master",
  used_memory: "1000000",
  maxmemory: "100000000",
  maxmemory_policy: "noeviction",
};

function found(changes: Record<string, string> = {}, aheadMs = 0) {
  const info = parseInfo(
    Object.entries({ ...healthy, ...changes })
      .map(([name, value]) => `${name}:${value}\r`)
      .join("\n"),
  );
  return storeFindings(info, { aheadMs });
}

const judged = (...given: Parameters<typeof found>) =>
  found(...given)
    .filter(({ verdict }) => verdict !== "ok")
    .map(({ check, verdict }) => `${check}: ${verdict}`);

describe("findings from a store's own information", () => {
  test("a healthy store needs no remedy", () => {
    expect(judged()).toEqual([]);
    expect(found().map(({ check }) => check)).toEqual(["store version", "store role", "store memory", "clocks"]);
  });

  test.each([
    ["an old version", { redis_version: "6.2.14" }, ["store version: warning"]],
    ["Valkey, which names an old Redis beside itself", { redis_version: "6.2.4", valkey_version: "8.1.1" }, []],
    ["a replica", { role: "slave", master_host: "10.0.0.1", master_port: "6379" }, ["store role: failed"]],
    ["no maxmemory", { maxmemory: "0" }, ["store memory: warning"]],
    ["eviction", { maxmemory_policy: "allkeys-lru" }, ["store memory: warning"]],
    ["little room left", { used_memory: "90000000" }, ["store memory: warning"]],
    ["no room left", { used_memory: "100000000" }, ["store memory: failed"]],
  ])("%s", (_what, changes, expected) => {
    expect(judged(changes)).toEqual(expected);
  });

  test("clocks that differ by a second and more, either way", () => {
    expect(judged({}, 999)).toEqual([]);
    expect(judged({}, -5_000)).toEqual(["clocks: warning"]);
    expect(found({}, 5_000).at(-1)!.text).toBe("the store's clock is 5.0 s ahead of this machine's");
  });

  test("information that a server omits causes no finding", () => {
    expect(storeFindings(new Map(), { aheadMs: 0 }).map(({ check }) => check)).toEqual(["clocks"]);
  });

  test("every problem has a remedy", () => {
    const bad = found({ redis_version: "5.0.0", role: "slave", maxmemory: "0" }, 9_000);
    expect(bad.every(({ remedy }) => remedy !== undefined)).toBe(true);
  });
});
