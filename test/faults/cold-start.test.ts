/** A process that has just started is late by itself: that is no outage of a healthy Redis. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";

const burst = fileURLToPath(new URL("cold-burst.mjs", import.meta.url));

describe.skipIf(whyMissing("redis"))("the first burst of a cold process", () => {
  test.each([
    // Urgent: a Redis that gets no core is silent, which is another matter.
    ["one Redis", () => startRedis({ urgent: true })],
    ["a cluster", () => startCluster({ node: () => ({ urgent: true }) })],
  ] as const)(
    "of 600 checks is decided by %s; none is left to the policy before it has waited for the stated second",
    async (_, start) => {
      await using redis = await start();
      for (let i = 0; i < 3; i++) {
        const { stdout } = await promisify(execFile)(process.execPath, [burst, redis.url, "600"]);
        expect(JSON.parse(stdout)).toEqual({ early: 0 });
      }
    },
  );
});
