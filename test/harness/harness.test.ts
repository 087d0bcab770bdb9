/** That the harness does to a real Redis what its names promise; other tests build on it. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "./free-port.js";
import { startRedis } from "./redis-server.js";
import { startTcpFaultProxy } from "./tcp-fault-proxy.js";

/** Sends one inline command; resolves with the reply, with "closed" if the connection ends first, or with "silence". */
function ask(port: number, command: string, patienceMs = 300): Promise<string> {
  return new Promise((resolve) => {
    const socket: Socket = connect({ port, host: "127.0.0.1" }, () => socket.write(`${command}\r\n`));
    const end = (answer: string) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => end("silence"), patienceMs);
    socket.on("data", (reply) => end(reply.toString().trimEnd()));
    socket.on("error", (error: NodeJS.ErrnoException) => end(error.code === "ECONNREFUSED" ? "refused" : "closed"));
    socket.on("close", () => end("closed"));
  });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe.skipIf(whyMissing("redis"))("a Redis of the harness", () => {
  test("answers on loopback until it is stopped, and leaves neither process nor folder", async () => {
    const redis = await startRedis();
    const folder = (await redis.cli("config", "get", "dir")).split("\n")[1]!;
    expect(await redis.cli("set", "a", "1")).toBe("OK");
    expect(await redis.cli("get", "a")).toBe("1");
    expect(existsSync(folder)).toBe(true);

    await redis.stop();
    expect(isAlive(redis.pid)).toBe(false);
    expect(existsSync(folder)).toBe(false);
    expect(await ask(redis.port, "PING")).toBe("refused");
  });

  test("keeps its port over a crash and a restart, and forgets its data", async () => {
    await using redis = await startRedis();
    await redis.cli("set", "a", "1");
    const before = redis.pid;
    await redis.kill();
    expect(isAlive(before)).toBe(false);

    await redis.restart();
    expect(redis.pid).not.toBe(before);
    expect(await redis.cli("exists", "a")).toBe("0");
  });

  test("is silent while paused, goes on when resumed, and can be stopped while paused", async () => {
    await using redis = await startRedis();
    redis.pause();
    expect(await ask(redis.port, "PING")).toBe("silence");
    redis.resume();
    expect(await ask(redis.port, "PING")).toBe("+PONG");
    redis.pause();
  });

  test("takes more arguments, allows DEBUG, and turns an error reply into a rejection", async () => {
    await using redis = await startRedis({ args: ["--maxmemory", "50mb"] });
    expect(await redis.cli("config", "get", "maxmemory")).toBe("maxmemory\n52428800");
    expect(await redis.cli("debug", "set-active-expire", "0")).toBe("OK");
    await expect(redis.cli("incr")).rejects.toThrow("wrong number of arguments");
  });

  test("prints every kind of reply as redis-cli does", async () => {
    await using redis = await startRedis();
    await redis.cli("MSET", "text", "two\r\nlines, é", "empty", "");
    const nested = "return {1, {'a', {redis.status_reply('b'), ''}}, {}, 'c'}";
    const questions: string[][] = [
      ["GET", "text"],
      ["GET", "empty"],
      ["GET", "none"],
      ["STRLEN", "text"],
      ["MGET", "text", "none", "empty"],
      ["KEYS", "no*"],
      ["EVAL", nested, "0"],
      ["SCAN", "0", "COUNT", "1000"],
      ["EVAL", "return string.rep('long ', 100000)", "0"],
    ];
    for (const words of questions) {
      const port = String(redis.port);
      const { stdout } = await promisify(execFile)("redis-cli", ["-p", port, ...words], { maxBuffer: 2 ** 20 });
      expect(await redis.cli(...words), words.join(" ").slice(0, 80)).toBe(stdout.replace(/\n$/, ""));
    }
    await redis.kill();
    await expect(redis.cli("PING")).rejects.toThrow("ECONNREFUSED");
  });

  test("says why it did not start", async () => {
    await expect(startRedis({ args: ["--no-such-setting", "1"] })).rejects.toThrow(/no-such-setting/);
  });
});

test.skipIf(whyMissing("redis", "faketime"))(
  "the clock of a Redis steps while it runs, forwards and backwards",
  async () => {
    await using redis = await startRedis({ faketime: true });
    const offsetSeconds = async () => {
      const [seconds, micros] = (await redis.cli("eval", "return redis.call('time')", "0")).split("\n").map(Number);
      return seconds! + micros! / 1e6 - Date.now() / 1000;
    };
    for (const step of [0, 3600, -120, 0.5, 0]) {
      redis.stepClock(step);
      // The margin is redis-cli's way there and back on a busy machine.
      expect(Math.abs((await offsetSeconds()) - step), `after a step to ${step} s`).toBeLessThan(0.4);
    }
  },
);

describe.skipIf(whyMissing("redis"))("a fault proxy in front of a Redis", () => {
  test("passes commands on, later by the latency it is told", async () => {
    await using redis = await startRedis();
    await using proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
    expect(await ask(proxy.port, "PING")).toBe("+PONG");

    proxy.latencyMs = 150;
    const startedMs = performance.now();
    expect(await ask(proxy.port, "PING", 2_000)).toBe("+PONG");
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(149);
  });

  test("a dropped reply means that the command was done and the client does not know", async () => {
    await using redis = await startRedis();
    await using proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
    const dropped = proxy.dropNextReply("INCR");
    expect(await ask(proxy.port, "PING")).toBe("+PONG");
    expect(await ask(proxy.port, "INCR counter")).toBe("closed");
    await dropped;
    expect(await ask(proxy.port, "INCR counter")).toBe(":2");
  });

  test("a black hole swallows commands, and connections work again after it", async () => {
    await using redis = await startRedis();
    await using proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
    proxy.blackhole(true);
    expect(await ask(proxy.port, "INCR counter")).toBe("silence");
    proxy.blackhole(false);
    expect(await ask(proxy.port, "INCR counter")).toBe(":1");
  });

  test("cut ends open connections, and refuse turns new ones away until it is lifted", async () => {
    await using redis = await startRedis();
    await using proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
    const blocked = ask(proxy.port, "BLPOP nothing 0", 5_000);
    await expect.poll(() => proxy.connections).toBe(1);
    proxy.cut();
    expect(await blocked).toBe("closed");

    await proxy.refuse(true);
    expect(await ask(proxy.port, "PING")).toBe("refused");
    await proxy.refuse(false);
    expect(await ask(proxy.port, "PING")).toBe("+PONG");
  });

  test("a client is cut off when the server behind it is gone", async () => {
    await using proxy = await startTcpFaultProxy({ upstreamPort: await freePort() });
    expect(await ask(proxy.port, "PING")).toBe("closed");
  });
});

test("callers who ask for free ports at once get different ones", async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, freePort));
  expect(new Set(ports).size).toBe(200);
});
