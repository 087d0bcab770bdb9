/** A process that has just started is late by itself: that is no outage of a healthy Redis. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";
import { makeUrgent } from "../harness/server-process.js";

const burst = fileURLToPath(new URL("cold-burst.mjs", import.meta.url));

describe.skipIf(whyMissing("redis"))("the first burst of a cold process", () => {
  test.each([
    // Urgent: a Redis that gets no core is silent, which is another matter.
    ["one Redis", () => startRedis({ urgent: true })],
    ["a cluster", () => startCluster({ node: () => ({ urgent: true }) })],
  ] as const)("of 600 checks is decided by %s, and none by the policy", async (_, start) => {
    await using redis = await start();
    for (let i = 0; i < 3; i++) {
      const running = promisify(execFile)(process.execPath, [burst, redis.url, "600"]);
      // So is the process: what is looked at is how long it waits by itself, not how long others keep it from running.
      makeUrgent(running.child.pid);
      const { stdout } = await running;
      expect(JSON.parse(stdout)).toEqual({ byStore: 600, early: 0, late: 0 });
    }
  });
});
