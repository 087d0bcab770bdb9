/** A restart in place without a supervisor: `kill PID; sluice serve`, at once. The successor starts while its predecessor drains. */
import { existsSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Rule } from "sluice";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { makeTempFolder } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { connectEnvoy, descriptor } from "./envoy-client.js";
import { runSluice, type ServiceProcess, startServiceProcess } from "./running-service.js";

const rules: Rule[] = [{ id: "all", key: [], algorithm: "fixed-window", limit: 1_000_000, window: "1d" }];

/** On a busy machine a signal may take seconds to arrive. */
const patient = { timeout: 60_000 };

interface Place {
  readonly folder: string;
  readonly settings: Record<string, string>;
  start(): Promise<ServiceProcess>;
}

async function place(more: Record<string, string> = {}): Promise<Place> {
  const folder = makeTempFolder("successor");
  const settings = {
    "data-folder": folder,
    port: String(await freePort()),
    "grpc-port": String(await freePort()),
    "drain-delay": "100ms",
    // What bounds the wait for a successor: longer than a busy machine takes to start one.
    "drain-timeout": "60s",
    ...more,
  };
  return { folder, settings, start: () => startServiceProcess({ rules, settings }) };
}

/** Clients at once, each with one connection at a time. */
const CLIENTS = 4;

/** Over one new connection; the status, or why there was none. */
function check(url: string): Promise<number | string> {
  return new Promise((resolve) => {
    const headers = { "content-type": "application/json", connection: "close" };
    const sent = request(`${url}/v1/check`, { method: "POST", headers }, (answer) => {
      answer.resume().once("end", () => resolve(answer.statusCode!));
    });
    sent.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sent.end(JSON.stringify({ attributes: { user: "x" } }));
  });
}

describe.skipIf(whyMissing("redis"))("with counters in Redis", () => {
  test("a successor that is started at once takes the ports when it can serve, and every request is answered once", async () => {
    await using redis = await startRedis();
    // A stall of the machine must not look like an outage: then a policy would count.
    const { folder, start } = await place({ store: redis.url, "store-deadline": "30s" });
    const predecessor = await start();
    let isRunning = true;
    const counts = new Map<number | string, number>();
    const load = Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        while (isRunning) {
          const outcome = await check(predecessor.http);
          counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
        }
      }),
    );
    await expect.poll(() => counts.get(200) ?? 0, patient).toBeGreaterThan(20);
    // As a successor has it that begins to start: on a busy machine the real one may take longer than the drain delay to begin.
    writeFileSync(join(folder, "successor"), JSON.stringify({ pid: process.pid, host: hostname(), isReady: false }));
    const ended = predecessor.end("SIGTERM");
    await expect.poll(() => existsSync(join(folder, "draining")), patient).toBe(true);
    const successor = await start();
    expect(await ended, predecessor.output()).toBe(0);
    const before = counts.get(200)!;
    await expect.poll(() => counts.get(200)!, patient).toBeGreaterThan(before + 20);
    isRunning = false;
    await load;
    // A connection that met neither process was refused. One that the kernel accepted within the very turn of the close is reset
    // (docs/service.md): at most one for each client, and its request is not decided, which the count below shows.
    const outcomes = [200, "ECONNREFUSED", "ECONNRESET"];
    expect([...counts.keys()].filter((outcome) => !outcomes.includes(outcome))).toEqual([]);
    expect(counts.get("ECONNRESET") ?? 0).toBeLessThanOrEqual(CLIENTS);
    expect(successor.http).toBe(predecessor.http);
    expect(successor.output()).toContain("a predecessor drains");
    const { status, body } = await peek(successor.http);
    expect([status, body.limit - body.remaining]).toEqual([200, counts.get(200)]);
    expect(["draining", "successor"].filter((name) => existsSync(join(folder, name)))).toEqual([]);
    expect(await successor.end()).toBe(0);
  });

  test("a call over gRPC that was sent to the predecessor is answered by it", async () => {
    await using redis = await startRedis();
    const { start } = await place({ store: redis.url, "store-deadline": "30s" });
    const predecessor = await start();
    const envoy = connectEnvoy(predecessor.grpc);
    const ask = (): Promise<unknown> =>
      envoy.shouldRateLimit({ domain: "d", descriptors: [descriptor({ user: "x" })] });
    await ask();
    const ended = predecessor.end("SIGTERM");
    const starting = start();
    const asked = Promise.allSettled(Array.from({ length: 50 }, ask));
    expect((await asked).filter(({ status }) => status === "rejected")).toEqual([]);
    const successor = await starting;
    expect(await ended).toBe(0);
    await ask();
    envoy.close();
    expect(await successor.end()).toBe(0);
  });

  test("a successor that cannot start leaves the predecessor to end as usual", async () => {
    await using redis = await startRedis();
    const { settings, folder, start } = await place({ store: redis.url });
    const predecessor = await start();
    const ended = predecessor.end("SIGTERM");
    await expect.poll(() => existsSync(join(folder, "draining")), patient).toBe(true);
    const broken = join(folder, "broken.yaml");
    writeFileSync(broken, "rules: [{ id: a, limit: -1 }]");
    const flags = Object.entries({ ...settings, rules: broken }).flatMap(([name, value]) => [`--${name}`, value]);
    expect((await runSluice(["serve", ...flags])).status).toBe(2);
    expect(await ended).toBe(0);
  });
});

test("with counters in memory, the successor also waits for the data folder", async () => {
  const { folder, start } = await place();
  const predecessor = await start();
  expect(await check(predecessor.http)).toBe(200);
  const ended = predecessor.end("SIGTERM");
  await expect.poll(() => existsSync(join(folder, "draining")), patient).toBe(true);
  const successor = await start();
  expect(await ended, predecessor.output()).toBe(0);
  expect(await check(successor.http)).toBe(200);
  expect(await successor.end()).toBe(0);
});

test("two workers succeed two workers", async () => {
  if (whyMissing("redis")) return;
  await using redis = await startRedis();
  const { folder, start } = await place({ store: redis.url, workers: "2" });
  const predecessor = await start();
  const ended = predecessor.end("SIGTERM");
  await expect.poll(() => existsSync(join(folder, "draining")), patient).toBe(true);
  const successor = await start();
  expect(await ended, predecessor.output()).toBe(0);
  expect(await check(successor.http)).toBe(200);
  expect(await successor.end()).toBe(0);
});

describe("a port that is taken ends the start", () => {
  const startOn = async ({ settings }: Place): Promise<string> => {
    const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    const { status, stderr } = await runSluice(["serve", ...flags]);
    expect(status).toBe(1);
    return stderr;
  };

  test("where a service holds it that does not drain", async () => {
    const there = await place();
    const service = await there.start();
    expect(await startOn(there)).toContain("is taken (EADDRINUSE)");
    expect(await service.end()).toBe(0);
  });

  test.each([
    ["is of a process that is gone", { pid: 2 ** 22 - 1 }],
    ["is of another host", { host: "elsewhere" }],
    ["has ended", { untilMs: 0 }],
    ["names other ports", { ports: [1] }],
    ["is garbage", { ports: "all", untilMs: "ever" }],
  ])("where the notice that a predecessor drains %s", async (_, more) => {
    const there = await place();
    const service = await there.start();
    const ports = [Number(there.settings.port), Number(there.settings["grpc-port"])];
    const notice = { pid: service.child.pid, host: hostname(), ports, untilMs: Date.now() + 600_000, ...more };
    writeFileSync(join(there.folder, "draining"), JSON.stringify(notice));
    expect(await startOn(there)).toContain("is taken (EADDRINUSE)");
    expect(await service.end()).toBe(0);
  });
});

async function peek(url: string): Promise<{ status: number; body: { limit: number; remaining: number } }> {
  const answer = await fetch(`${url}/v1/peek`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ attributes: { user: "x" }, cost: 0 }),
  });
  return { status: answer.status, body: (await answer.json()) as { limit: number; remaining: number } };
}
