/** `sluice compare` and `sluice plan` that are cut short while they measure on a Redis: by a signal, or because the Redis goes away. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const program = fileURLToPath(new URL("../../packages/server/bin/sluice.js", import.meta.url));
const rules = fileURLToPath(new URL("../../examples/analysis/draft.yaml", import.meta.url));

interface Command {
  readonly child: ChildProcess;
  readonly ended: Promise<{ status: number | null; signal: string | null; err: string }>;
}

function sluice(args: readonly string[]): Command {
  const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  let err = "";
  child.stderr!.on("data", (chunk) => (err += chunk));
  const ended = once(child, "close").then(([status, signal]) => ({ status, signal, err }));
  return { child, ended };
}

/** More requests than any test waits for. */
const compare = (store: string): Command =>
  sluice(["compare", "--limit", "20", "--window", "1h", "--requests", "50000000", "--store", store]);

describe.skipIf(whyMissing("redis"))("on a real Redis", () => {
  let redis: RedisServer;
  beforeEach(async () => {
    redis = await startRedis();
  });
  afterEach(() => redis.stop());

  async function untilMeasuring({ child }: Command): Promise<void> {
    while ((await redis.cli("DBSIZE")) === "0") {
      expect(child.exitCode).toBeNull();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  test.each(["SIGINT", "SIGTERM"] as const)("%s: keys of the measurement are removed", async (signal) => {
    const command = compare(redis.url);
    await untilMeasuring(command);
    command.child.kill(signal);
    expect(await command.ended).toEqual({ status: null, signal, err: "" });
    expect(await redis.cli("DBSIZE")).toBe("0");
  });

  test("plan --measure removes its keys too", async () => {
    const load = ["--rules", rules, "--keys", "1000000", "--rate", "100000"];
    const command = sluice(["plan", ...load, "--measure", "--store", redis.url]);
    await untilMeasuring(command);
    command.child.kill("SIGINT");
    expect(await command.ended).toEqual({ status: null, signal: "SIGINT", err: "" });
    expect(await redis.cli("DBSIZE")).toBe("0");
  });

  test("a Redis that goes away is reported, and the command ends", async () => {
    const command = compare(redis.url);
    await untilMeasuring(command);
    await redis.kill();
    expect(await command.ended).toEqual({
      status: 1,
      signal: null,
      err: expect.stringMatching(/^store: went away while it was measured: .*\n$/),
    });
  });

  test("an embedded Redis ends with a command that is terminated", async () => {
    const command = compare("embedded");
    const pid = await embeddedOf(command.child.pid!);
    command.child.kill("SIGTERM");
    expect((await command.ended).signal).toBe("SIGTERM");
    // Redis takes a moment to end.
    while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
  });
});

async function embeddedOf(parent: number): Promise<number> {
  for (;;) {
    const listed = spawn("ps", ["-o", "pid=,comm=", "--ppid", String(parent)]);
    let out = "";
    listed.stdout.on("data", (chunk) => (out += chunk));
    await once(listed, "close");
    const found = /(\d+) redis-server/.exec(out)?.[1];
    if (found !== undefined) return Number(found);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
