/** SIGTERM under load loses no answer; a Redis that stops answering under load holds nobody. */
import { createServer } from "node:http";
import { Worker } from "node:worker_threads";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { drain, trackConnections } from "../../packages/server/src/http/drain.js";
import { servePort } from "../../packages/server/src/http/port.js";
import { WaitingListener } from "../../packages/server/src/http/waiting-listener.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { connectEnvoy, descriptor } from "./envoy-client.js";
import { LoadConnections } from "./load-connections.js";
import { startServiceProcess } from "./running-service.js";

const rules: Rule[] = [{ id: "load", key: ["user"], algorithm: "token-bucket", limit: 1_000_000, window: "1s" }];
const body = JSON.stringify({ attributes: { user: "x" } });

/** The signal comes in the midst of the load, however fast the machine is. */
const ANSWERED_BEFORE = 200;

describe("SIGTERM under load", () => {
  test.each([["HTTP"], ["gRPC"]] as const)("every accepted request over %s gets its answer", async (transport) => {
    const service = await startServiceProcess({ rules });
    const connections = new LoadConnections({ url: service.http, count: 32 });
    const envoy = connectEnvoy(service.grpc);
    const tally = { answered: 0, notAccepted: 0, lost: [] as string[] };
    let isEnding = false;
    let busy: () => void = () => undefined;
    const isBusy = new Promise<void>((resolve) => {
      busy = resolve;
    });
    const client = async (): Promise<void> => {
      for (;;) {
        try {
          if (transport === "HTTP") {
            const { status } = await connections.send("POST", "/v1/check", { body });
            expect(status).toBe(200);
          } else await envoy.shouldRateLimit({ domain: "d", descriptors: [descriptor({ user: "x" })] });
          if (++tally.answered === ANSWERED_BEFORE) busy();
        } catch (error) {
          const { code, message } = error as NodeJS.ErrnoException;
          // Nobody listens any more: the request was never accepted, and a client turns to another instance.
          const refused =
            isEnding && (code === "ECONNREFUSED" || /ECONNREFUSED|No connection established/.test(message));
          if (refused) tally.notAccepted++;
          else tally.lost.push(`${String(code)} ${message}`);
          busy();
          return;
        }
      }
    };
    const clients = Array.from({ length: 32 }, client);
    await isBusy;
    isEnding = true;
    const ended = service.end("SIGTERM");
    await Promise.all(clients);
    expect(await ended).toBe(0);
    envoy.close();
    console.log(
      `${transport}: ${tally.answered} answered, ${tally.lost.length} lost, ${tally.notAccepted} clients turned away`,
    );
    expect(tally.lost).toEqual([]);
    expect(tally.answered).toBeGreaterThanOrEqual(ANSWERED_BEFORE);
    expect(tally.notAccepted).toBe(clients.length);
  });
});

/** Opens connections and sends a request on each, in a thread of its own; then counts the answers. */
const clientThread = `
  const { parentPort, workerData } = require("node:worker_threads");
  const { connect } = require("node:net");
  const { port, count, sent } = workerData;
  const outcomes = Array.from({ length: count }, () => new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => socket.write("GET / HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n", () => {
      Atomics.add(sent, 0, 1);
      Atomics.notify(sent, 0);
    }));
    socket.once("data", (text) => resolve(String(text).slice(0, 15)));
    socket.once("error", ({ code }) => resolve(code));
    socket.once("close", () => resolve("closed"));
  }));
  Promise.all(outcomes).then((all) => parentPort.postMessage(all));
`;

test("connections that come while the process is held up, right before its listener closes, are answered", async () => {
  const server = trackConnections(createServer((_, response) => response.end("here")));
  const port = await new WaitingListener().listen({ host: "127.0.0.1", port: 0, portSetting: "port" });
  servePort(server, port);
  const sent = new Int32Array(new SharedArrayBuffer(4));
  const count = 20;
  const client = new Worker(clientThread, { eval: true, workerData: { port: port.number, count, sent } });
  const outcomes = new Promise<string[]>((resolve) => client.once("message", resolve));
  // This thread, which accepts, stands still until all of them wait in the kernel's queue.
  for (let n = Atomics.load(sent, 0); n < count; n = Atomics.load(sent, 0)) Atomics.wait(sent, 0, n);
  await port.close();
  await drain(server, { timeoutMs: 30_000 });
  expect(await outcomes).toEqual(Array.from({ length: count }, () => "HTTP/1.1 200 OK"));
  await client.terminate();
});

describe.skipIf(whyMissing("redis"))("a Redis that is stopped (SIGSTOP) under load", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  // How long a check may take stands in deadlines.test.ts and in test/faults; here every answer comes before Redis does.
  test("leaves every check answered, by policy, while Redis is silent", async () => {
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
      settings: { store: redis.url, "store-deadline": "100ms" },
    });
    const connections = new LoadConnections({ url: service.http, count: 16 });
    const check = async (plan: string): Promise<{ allowed: boolean; degraded?: string }> => {
      const text = JSON.stringify({ attributes: { user: "x", plan } });
      return JSON.parse((await connections.send("POST", "/v1/check", { body: text })).body);
    };
    const plans = ["open", "shut", "near"];
    const ask = async (rounds: number) =>
      (
        await Promise.all(
          Array.from({ length: 15 }, async (_, i) => {
            const plan = plans[i % 3]!;
            const answers: { plan: string; allowed: boolean; degraded?: string }[] = [];
            for (let round = 0; round < rounds; round++) answers.push({ plan, ...(await check(plan)) });
            return answers;
          }),
        )
      ).flat();
    await expect.poll(async () => (await check("open")).degraded, { timeout: 10_000 }).toBeUndefined();

    redis.pause();
    const answers = await ask(40);
    // Only now: what waited for Redis would still wait.
    redis.resume();
    expect(answers).toHaveLength(600);
    const of = (wanted: string) => answers.filter(({ plan }) => plan === wanted);
    expect(of("open").every(({ allowed, degraded }) => allowed && degraded === "allow")).toBe(true);
    expect(of("shut").every(({ allowed, degraded }) => !allowed && degraded === "deny")).toBe(true);
    expect(of("near").every(({ degraded }) => degraded === "local")).toBe(true);
    expect(of("near").filter(({ allowed }) => allowed).length).toBeLessThanOrEqual(5);
    await expect.poll(async () => (await check("open")).degraded, { timeout: 10_000 }).toBeUndefined();
    connections.close();
    await service.end();
  });
});
