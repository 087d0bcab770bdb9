/** A Redis of the benchmark's own, on loopback, on a free port; stopped by its id. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (probe.address());
  probe.close();
  return port;
}

/** @param {readonly string[]} more Arguments of redis-server. */
export async function startRedis(more = []) {
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), "sluice-bench-"));
  const own = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder];
  const args = [...own, ...more];
  const server = spawn("redis-server", args, { stdio: "ignore" });
  const failed = once(server, "error").then(([error]) => {
    throw new Error(`redis-server does not start (Debian: apt-get install redis-server): ${error.message}`);
  });
  const admin = new Redis({ port, lazyConnect: false, retryStrategy: () => 20 });
  admin.on("error", () => {});
  await Promise.race([new Promise((resolve) => admin.once("ready", resolve)), failed]);
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    admin,
    /** Microseconds of processor time that Redis has used. */
    async cpuUs() {
      const info = await admin.info("cpu");
      const seconds = ["used_cpu_user", "used_cpu_sys"].map((name) =>
        Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1]),
      );
      return seconds.reduce((sum, value) => sum + value, 0) * 1e6;
    },
    /** How many commands clients have sent; what scripts call inside is not among them. */
    async evalshaCalls() {
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await admin.info("commandstats"))?.[1] ?? 0);
    },
    async stop() {
      admin.disconnect();
      server.kill("SIGKILL");
      await once(server, "exit");
      await rm(folder, { recursive: true, force: true });
    },
  };
}
