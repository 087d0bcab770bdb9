/** SIGTERM under load loses no answer; a Redis that stops answering under load holds nobody beyond the deadline. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { connectEnvoy, descriptor } from "./envoy-client.js";
import { LoadConnections } from "./load-connections.js";
import { startServiceProcess } from "./running-service.js";

const rules: Rule[] = [{ id: "load", key: ["user"], algorithm: "token-bucket", limit: 1_000_000, window: "1s" }];
const body = JSON.stringify({ attributes: { user: "x" } });

describe("SIGTERM under load", () => {
  test.each([["HTTP"], ["gRPC"]] as const)("every accepted request over %s gets its answer", async (transport) => {
    const service = await startServiceProcess({ rules });
    const connections = new LoadConnections({ url: service.http, count: 32 });
    const envoy = connectEnvoy(service.grpc);
    const tally = { answered: 0, notAccepted: 0, lost: [] as string[] };
    let isEnding = false;
    const client = async (): Promise<void> => {
      for (;;) {
        try {
          if (transport === "HTTP") {
            const { status } = await connections.send("POST", "/v1/check", { body });
            expect(status).toBe(200);
          } else await envoy.shouldRateLimit({ domain: "d", descriptors: [descriptor({ user: "x" })] });
          tally.answered++;
        } catch (error) {
          const { code, message } = error as NodeJS.ErrnoException;
          // Nobody listens any more: the request was never accepted, and a client turns to another instance.
          const refused =
            isEnding && (code === "ECONNREFUSED" || /ECONNREFUSED|No connection established/.test(message));
          if (refused) tally.notAccepted++;
          else tally.lost.push(`${String(code)} ${message}`);
          return;
        }
      }
    };
    const clients = Array.from({ length: 32 }, client);
    await sleep(700);
    isEnding = true;
    const ended = service.end("SIGTERM");
    await Promise.all(clients);
    expect(await ended).toBe(0);
    envoy.close();
    console.log(
      `${transport}: ${tally.answered} answered, ${tally.lost.length} lost, ${tally.notAccepted} clients turned away`,
    );
    expect(tally.lost).toEqual([]);
    expect(tally.answered).toBeGreaterThan(100);
  });
});

describe.skipIf(whyMissing("redis"))("a Redis that is stopped (SIGSTOP) under load", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const deadlineMs = 100;

  test("leaves every check answered within the deadline plus 20 ms, by policy", async () => {
    const service = await startServiceProcess({
      rules: [
        {
          id: "open",
          onStoreFailure: "allow",
          key: ["user"],
          match: { plan: "open" },
          algorithm: "fixed-window",
          limit: 1_000_000,
          window: "1h",
        },
        {
          id: "shut",
          key: ["user"],
          match: { plan: "shut" },
          algorithm: "fixed-window",
          limit: 1_000_000,
          window: "1h",
          onStoreFailure: "deny",
        },
        {
          id: "near",
          key: ["user"],
          match: { plan: "near" },
          algorithm: "fixed-window",
          limit: 5,
          window: "1h",
          onStoreFailure: "local",
        },
      ],
      settings: { store: redis.url, "store-deadline": `${deadlineMs}ms` },
    });
    const connections = new LoadConnections({ url: service.http, count: 16 });
    const check = async (plan: string) => {
      const text = JSON.stringify({ attributes: { user: "x", plan } });
      const startedMs = performance.now();
      const answer = await connections.send("POST", "/v1/check", { body: text });
      return { ms: performance.now() - startedMs, ...JSON.parse(answer.body) };
    };
    const plans = ["open", "shut", "near"];
    for (const plan of plans) expect((await check(plan)).degraded).toBeUndefined();

    let isRunning = true;
    const answers: { ms: number; degraded?: string; allowed: boolean; plan: string }[] = [];
    // What an empty request takes at the same time: a machine that runs other tests delays both, and only the difference is ours.
    const emptyMs: number[] = [];
    const clients = Array.from({ length: 16 }, async (_, i) => {
      const plan = plans[i % 3]!;
      while (isRunning) {
        answers.push({ ...(await check(plan)), plan });
        const startedMs = performance.now();
        await connections.send("GET", "/healthz");
        emptyMs.push(performance.now() - startedMs);
        await sleep(5);
      }
    });
    await sleep(300);
    redis.pause();
    await sleep(1_500);
    redis.resume();
    await expect.poll(async () => (await check("open")).degraded, { timeout: 5_000 }).toBeUndefined();
    isRunning = false;
    await Promise.all(clients);

    const degraded = answers.filter((answer) => answer.degraded !== undefined);
    const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
    const worstMs = times.at(-1)!;
    const p99Ms = times[Math.floor(times.length * 0.99)]!;
    const noiseMs = Math.max(...emptyMs);
    console.log(
      `${answers.length} checks, ${degraded.length} by policy; p99 ${p99Ms.toFixed(1)} ms, worst ${worstMs.toFixed(1)} ms; ` +
        `deadline ${deadlineMs} ms, an empty request took up to ${noiseMs.toFixed(1)} ms`,
    );
    expect(degraded.length).toBeGreaterThan(50);
    expect(worstMs).toBeLessThanOrEqual(deadlineMs + 20 + noiseMs);
    expect(
      degraded.filter(({ plan }) => plan === "open").every(({ allowed, degraded }) => allowed && degraded === "allow"),
    ).toBe(true);
    expect(
      degraded.filter(({ plan }) => plan === "shut").every(({ allowed, degraded }) => !allowed && degraded === "deny"),
    ).toBe(true);
    expect(degraded.filter(({ plan, allowed }) => plan === "near" && allowed).length).toBeLessThanOrEqual(5);
    connections.close();
    await service.end();
  });
});
