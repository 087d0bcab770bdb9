/** The rule cache on each kind of Redis that a store may be: one server, Sentinel, a cluster. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { RuleCache } from "../../packages/server/src/configuration/rule-cache.js";
import { redisClient } from "../../packages/server/src/instance/redis-client.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { makeTempFolder } from "../harness/leash.js";
import { redisBinary, startRedis } from "../harness/redis-server.js";
import { startServerProcess } from "../harness/server-process.js";
import { eventually } from "./instance.js";

const document = (version: number) => ({ version, digest: `d${version}`, createdAtMs: 5, document: `text ${version}` });

/** What one instance caches and announces, another hears and reads. */
async function holdsOn(url: string): Promise<void> {
  const heard: number[] = [];
  let ready = 0;
  const open = (onAnnounced: (version: number) => void) =>
    new RuleCache({ url, ttlMs: 60_000, onAnnounced, onReady: () => ready++ });
  const writer = open(() => undefined);
  const reader = open((version) => heard.push(version));
  // Each has a connection for commands and one that listens.
  await eventually("both listen", () => ready === 4 && writer.isUp && reader.isUp);

  expect(await reader.read()).toBeUndefined();
  await writer.write(document(2));
  await writer.announce(2);
  await eventually("it is heard", () => heard.includes(2));
  expect(await reader.mark()).toEqual({ version: 2, digest: "d2", createdAtMs: 5 });
  expect(await reader.read()).toEqual(document(2));
  await writer.write(document(1));
  expect((await reader.mark())?.version).toBe(2);
  await writer.write(document(1), true);
  expect(await reader.read()).toEqual(document(1));
  writer.close();
  reader.close();
}

describe.skipIf(whyMissing("redis"))("the rule cache works", () => {
  test("on one Redis", async () => {
    await using redis = await startRedis();
    await holdsOn(redis.url);
  });

  test("on a cluster", async () => {
    // A node that never met another does not know its own address, and would tell clients none.
    await using redis = await startRedis({ args: ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"] });
    await redis.cli("cluster", "addslotsrange", "0", "16383");
    await eventually("the cluster is well", async () =>
      (await redis.cli("cluster", "info")).includes("cluster_state:ok"),
    );
    await holdsOn(`redis+cluster://127.0.0.1:${redis.port}`);
  });

  test("by way of Sentinel", async () => {
    await using redis = await startRedis();
    const port = await freePort();
    const folder = makeTempFolder("sentinel");
    const file = join(folder, "sentinel.conf");
    writeFileSync(
      file,
      `port ${port}\nbind 127.0.0.1\ndir ${folder}\nsentinel monitor main 127.0.0.1 ${redis.port} 1\n`,
    );
    const sentinel = await startServerProcess({
      command: redisBinary(),
      args: [file, "--sentinel"],
      readyLine: /Sentinel ID is/,
    });
    await holdsOn(`redis+sentinel://127.0.0.1:${port}/main`);
    await sentinel.stop();
  });
});

test.each(["http://host", "redis+cluster://", "redis+other://h", "", "redis+sentinel://a,,b/c"])(
  "%j names no Redis",
  (url) => {
    expect(() => redisClient(url)).toThrow(/^store: expected /);
  },
);
