import { expect, test } from "vitest";
import {
  factsOf,
  latencyEvents,
  parseClusterNodes,
  parseInfo,
  replicasOf,
  replicationOffset,
  slowCommands,
} from "./node-report.js";

const info = parseInfo(
  [
    "# Server",
    "redis_version:7.0.15",
    "role:master",
    "used_memory:1048576",
    "maxmemory:0",
    "db0:keys=3,expires=3,avg_ttl=5",
    "db12:keys=4,expires=0,avg_ttl=0",
    "slave0:ip=127.0.0.1,port=6380,state=online,offset=42,lag=0",
    "master_repl_offset:50",
    "executable:/usr/bin/redis:server",
    "",
  ].join("\r\n"),
);

test("INFO is parsed: line ends and section titles are dropped, values may contain colons, the keys of all databases are summed", () => {
  expect(info.get("executable")).toBe("/usr/bin/redis:server");
  expect(factsOf(info)).toEqual({ version: "7.0.15", role: "leader", usedBytes: 1_048_576, maxBytes: 0, keys: 7 });
  expect(replicasOf(info)).toEqual([{ address: "127.0.0.1:6380", offset: 42 }]);
  expect(replicationOffset(info)).toBe(50);
});

test("a replica names its leader; fields missing from INFO are left out", () => {
  const replica = parseInfo("role:slave\nmaster_host:10.0.0.1\nmaster_port:6379\nevicted_keys:x");
  expect(factsOf(replica)).toEqual({ role: "replica", leaderAddress: "10.0.0.1:6379" });
  expect(factsOf(parseInfo(""))).toEqual({});
  expect(replicationOffset(parseInfo(""))).toBeUndefined();
});

test("CLUSTER NODES is parsed: migrating slots and nodes without an address are left out, failed ones are marked", () => {
  const nodes = parseClusterNodes(
    [
      "id1 10.0.0.1:6379@16379,host1 myself,master - 0 1 1 connected 0-5460 9000 [5461->-id2]",
      "id2 10.0.0.2:6379@16379 master,fail - 0 1 2 disconnected 5462-16383",
      "id3 10.0.0.3:6379@16379 slave id1 0 1 1 connected",
      "id4 :0@0 master,noaddr - 0 1 3 disconnected",
      "id5 10.0.0.5:6379@16379 handshake - 0 1 0 connected",
      "id6 10.0.0.6:6379@16379 master,fail? - 0 1 4 connected",
      "",
    ].join("\n"),
  );
  expect(nodes).toEqual([
    { address: "10.0.0.1:6379", role: "leader", slots: ["0-5460", "9000"], failed: false },
    { address: "10.0.0.2:6379", role: "leader", slots: ["5462-16383"], failed: true },
    { address: "10.0.0.3:6379", role: "replica", leaderAddress: "10.0.0.1:6379", slots: [], failed: false },
    { address: "10.0.0.6:6379", role: "leader", slots: [], failed: false },
  ]);
});

test("a slow command is shown without its arguments: keys and values are user data", () => {
  const reply = [
    [1, 1_700_000_000, 12_500, ["EVALSHA", "abc", "secret-user"]],
    [2, 1_700_000_001, 100, ["PING"]],
  ];
  expect(slowCommands(reply)).toEqual([
    { atMs: 1_700_000_000_000, tookMs: 12.5, command: "EVALSHA (2 arguments)" },
    { atMs: 1_700_000_001_000, tookMs: 0.1, command: "PING" },
  ]);
});

test("a reply of another shape is skipped", () => {
  expect([slowCommands(null), slowCommands([1, [1, 2]]), latencyEvents("x"), latencyEvents([null])]).toEqual([
    [],
    [],
    [],
    [],
  ]);
  expect(latencyEvents([["command", 5, 6, 7]])).toEqual([{ event: "command", atMs: 5_000, lastMs: 6, worstMs: 7 }]);
});
