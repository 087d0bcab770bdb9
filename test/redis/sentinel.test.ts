/** By Sentinel: the master is found by its name, with a password on both. (Failover is the fault suite's.) */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";
import { expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { makeTempFolder, removeTempFolder } from "../harness/leash.js";
import { redisBinary, startRedis } from "../harness/redis-server.js";
import { startServerProcess } from "../harness/server-process.js";

test.skipIf(whyMissing("redis"))(
  "a limiter finds the master through a Sentinel, and authenticates on both",
  async () => {
    const master = await startRedis({ args: ["--requirepass", "secret", "--masterauth", "secret"] });
    const folder = makeTempFolder("sentinel");
    const port = await freePort();
    const file = join(folder, "sentinel.conf");
    writeFileSync(
      file,
      [
        `port ${port}`,
        "bind 127.0.0.1",
        `dir ${folder}`,
        "requirepass secret",
        `sentinel monitor main 127.0.0.1 ${master.port} 1`,
        "sentinel auth-pass main secret",
      ].join("\n"),
    );
    const sentinel = await startServerProcess({
      command: redisBinary(),
      args: [file, "--sentinel"],
      env: {},
      readyLine: /monitor master main/,
    });
    const limiter = createLimiter({
      store: redisStore(`redis+sentinel://:secret@127.0.0.1:${port}/main`, { deadlineMs: 2_000 }),
      rules: [{ id: "r", key: ["user"], algorithm: "rolling-window", limit: 2, window: "1h", onStoreFailure: "deny" }],
    });
    try {
      for (const remaining of [1, 0])
        expect(await limiter.check({ user: "ann" })).toMatchObject({ allowed: true, remaining });
      expect(await limiter.check({ user: "ann" })).toMatchObject({ allowed: false, reason: "limit" });

      // The master's password is another one from now on: an outage, which is told by that.
      const causes: string[] = [];
      limiter.on("degraded", (cause) => causes.push(String(cause)));
      const redisCli = (...args: string[]) =>
        promisify(execFile)("redis-cli", ["-p", String(master.port), "--no-auth-warning", ...args]);
      await redisCli("-a", "secret", "CONFIG", "SET", "requirepass", "rotated");
      await redisCli("-a", "rotated", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      expect(await limiter.check({ user: "bob" })).toMatchObject({ allowed: false, degraded: "deny" });
      await expect.poll(() => causes, { timeout: 5_000 }).toEqual([expect.stringMatching(/WRONGPASS|NOAUTH/)]);
    } finally {
      await limiter.close();
      await sentinel.stop();
      await master.stop();
      removeTempFolder(folder);
    }
  },
);
