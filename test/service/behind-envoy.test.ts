/** Behind a real Envoy: exact under load, usage charged when streams end, places that are never exceeded, restarts that nobody sees. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy } from "../harness/tcp-fault-proxy.js";
import { connectEnvoy, descriptor } from "./envoy-client.js";
import { LoadConnections } from "./load-connections.js";
import { startApp, startConfigured, startEnvoy } from "./real-envoy.js";
import { startServiceProcess, startTestService } from "./running-service.js";

const pool = { generic_key: { descriptor_key: "pool", descriptor_value: "checkout" } };
const lease = {
  metadata: {
    descriptor_key: "sluice_lease",
    source: "DYNAMIC",
    metadata_key: { key: "envoy.filters.http.ratelimit", path: [{ key: "sluice_lease" }] },
  },
};
const byUser = [{ actions: [{ request_headers: { header_name: "x-user", descriptor_key: "user" } }] }];

const stores = whyMissing("redis") ? ["memory"] : ["memory", "redis"];

describe.skipIf(whyMissing("envoy"))("a real Envoy", () => {
  test("runs the example's configuration: limits, fields, wildcards", async () => {
    const app = await startApp((_request, response) => response.end("from the app"));
    const example = (name: string) =>
      readFileSync(fileURLToPath(new URL(`../../examples/envoy/${name}`, import.meta.url)), "utf8");
    await using service = await startTestService({
      files: {
        // A day, so that no minute ends between two requests.
        "limits/shop.yaml": example("limits/shop.yaml").replace(
          "unit: minute, requests_per_unit: 100",
          "unit: day, requests_per_unit: 3",
        ),
      },
      settings: { "envoy-config": "limits" },
    });
    const port = await freePort();
    const text = example("envoy.yaml")
      // On a busy machine the first call takes longer, and would pass uncounted.
      .replace("timeout: 0.1s", "timeout: 10s")
      .replace("port_value: 8090", `port_value: ${port}`)
      .replace("port_value: 3000", `port_value: ${app.at.split(":")[1]}`)
      .replace("port_value: 8081", `port_value: ${service.grpc.split(":")[1]}`);
    const envoy = await startConfigured(text);
    const get = (user: string) => fetch(`http://127.0.0.1:${port}/`, { headers: { "x-user": user } });
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await get("ann")).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    const refused = await get("ann");
    expect(refused.headers.get("x-ratelimit-limit")).toContain("3");
    expect(refused.headers.get("x-ratelimit-remaining")).toBe("0");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(refused.headers.get("content-type")).toContain("problem+json");
    expect(await refused.json()).toMatchObject({ status: 429 });
    expect((await get("internal-7")).status).toBe(200);
    await envoy.stop();
    app.close();
  });

  test.each(stores)("64 connections: the application sees exactly the limit, with the store in %s", async (kind) => {
    const app = await startApp((_request, response) => response.end("ok"));
    const redis = kind === "redis" ? await startRedis() : undefined;
    await using service = await startTestService({
      files: {
        "limits/d.yaml":
          "domain: d\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: 1500, on_store_failure: deny } }]",
      },
      settings: { "envoy-config": "limits", store: redis?.url ?? "memory", "store-deadline": "60s" },
    });
    const envoy = await startEnvoy({ limiter: service.grpc, app: app.at, domain: "d", rateLimits: byUser });
    const load = new LoadConnections({ url: envoy.url, count: 64 });
    const counts = new Map<number, number>();
    const answers = Array.from({ length: 4000 }, async () => {
      const { status } = await load.send("GET", "/", { headers: "x-user: all\r\n" });
      counts.set(status, (counts.get(status) ?? 0) + 1);
    });
    await Promise.all(answers);
    expect(Object.fromEntries(counts)).toEqual({ 200: 1500, 429: 2500 });
    expect(app.seen().total).toBe(1500);
    await envoy.stop();
    await redis?.stop();
    app.close();
  });

  test.each(stores)(
    "usage that a response tells is charged when its stream is done, and looks after it refuse, with every algorithm in %s",
    async (kind) => {
      const app = await startApp((_request, response) => response.setHeader("x-tokens", "300").end("ok"));
      await using redis = kind === "redis" ? await startRedis() : undefined;
      const algorithms = ["fixed-window", "rolling-window", "sliding-counter", "token-bucket", "gcra"];
      const descriptors = algorithms.map(
        (name) => `  - { key: ${name}, rate_limit: { requests_per_unit: 1000, window: 300d, algorithm: ${name} } }`,
      );
      await using service = await startTestService({
        files: { "limits/d.yaml": `domain: d\ndescriptors:\n${descriptors.join("\n")}` },
        settings: { "envoy-config": "limits", store: redis?.url ?? "memory", "store-deadline": "60s" },
      });
      // A request has one of the headers, so one of the limits.
      const by = (name: string) => ({ request_headers: { header_name: `x-${name}`, descriptor_key: name } });
      const envoy = await startEnvoy({
        limiter: service.grpc,
        app: app.at,
        domain: "d",
        rateLimits: algorithms.flatMap((name) => [
          { actions: [by(name)], hits_addend: { number: 0 } },
          { actions: [by(name)], hits_addend: { format: "%RESP(X-TOKENS)%" }, apply_on_stream_done: true },
        ]),
      });
      const client = connectEnvoy(service.grpc);
      const look = async (name: string): Promise<number> => {
        const one = descriptor({ [name]: "ann" }, { hitsAddend: { value: 0 } });
        return (await client.shouldRateLimit({ domain: "d", descriptors: [one] })).statuses[0].limitRemaining;
      };
      const statusesOf = async (name: string): Promise<number[]> => {
        const statuses: number[] = [];
        for (let i = 1; i <= 8; i++) {
          statuses.push((await fetch(envoy.url, { headers: { [`x-${name}`]: "ann" } })).status);
          // Each charge comes after its response. Refused streams are done, too, and charge what their response tells: nothing.
          const left = Math.max(0, 1000 - 300 * Math.min(i, 4));
          await expect.poll(() => look(name), { timeout: 60_000 }).toBe(left);
        }
        return statuses;
      };
      const seen = await Promise.all(algorithms.map(statusesOf));
      // 0, 300, 600, 900 are not past 1000; 1200 is.
      const expected = [200, 200, 200, 200, 429, 429, 429, 429];
      expect(Object.fromEntries(algorithms.map((name, i) => [name, seen[i]]))).toEqual(
        Object.fromEntries(algorithms.map((name) => [name, expected])),
      );
      expect(app.seen().total).toBe(4 * algorithms.length);
      client.close();
      await envoy.stop();
      app.close();
    },
  );

  test.each(stores)(
    "places in %s: the application never has more than the limit under way, with retries, aborts and refusals; all come back",
    async (kind) => {
      let turn = 0;
      const app = await startApp((_request, response) => {
        // Every fifth fails, which the route retries; the others take their time.
        if (turn++ % 5 === 0) response.writeHead(503).end();
        else setTimeout(() => response.end("ok"), 5 + (turn % 4) * 10);
      });
      await using redis = kind === "redis" ? await startRedis() : undefined;
      await using service = await startTestService({
        files: {
          "limits/d.yaml":
            "domain: d\ndescriptors: [{ key: pool, rate_limit: { requests_per_unit: 3, algorithm: concurrency, ttl: 20s } }]",
        },
        settings: { "envoy-config": "limits", store: redis?.url ?? "memory", "store-deadline": "30s" },
      });
      const envoy = await startEnvoy({
        limiter: service.grpc,
        app: app.at,
        domain: "d",
        rateLimits: [{ actions: [pool] }, { actions: [lease], apply_on_stream_done: true }],
        route: { retry_policy: { retry_on: "5xx", num_retries: 2 } },
      });
      const counts = { 200: 0, 429: 0, 503: 0, aborted: 0 };
      const worker = async (self: number): Promise<void> => {
        for (let i = 0; i < 25; i++) {
          const signal = (self + i) % 4 === 0 ? AbortSignal.timeout(1 + ((self * 7 + i * 3) % 20)) : null;
          const status = await fetch(envoy.url, { signal }).then(
            async (answer) => {
              await answer.text();
              return answer.status as 200 | 429 | 503;
            },
            () => "aborted" as const,
          );
          counts[status]++;
        }
      };
      await Promise.all(Array.from({ length: 16 }, (_, self) => worker(self)));
      expect(app.seen().most).toBeLessThanOrEqual(3);
      expect(counts[200]).toBeGreaterThan(0);
      expect(counts[429]).toBeGreaterThan(0);
      // A client that leaves between Sluice's answer and Envoy's reading it keeps its place until the ttl ends: Envoy tells nobody.
      let held: number[] = [];
      for (let tries = 0; tries < 400; tries++) {
        held = await Promise.all([1, 2, 3].map(async () => (await fetch(envoy.url)).status));
        if (!held.includes(429)) break;
        await sleep(100);
      }
      expect(held.filter((status) => status === 429)).toEqual([]);
      await envoy.stop();
      app.close();
    },
  );

  test.skipIf(whyMissing("redis"))(
    "places of clients that leave while Envoy waits for the answer come back at once",
    async () => {
      const app = await startApp((_request, response) => response.end("ok"));
      const redis = await startRedis();
      await using slow = await startTcpFaultProxy({ upstreamPort: redis.port });
      await using service = await startTestService({
        files: {
          // The ttl is of no help: it outlasts the test.
          "limits/d.yaml":
            "domain: d\ndescriptors: [{ key: pool, rate_limit: { requests_per_unit: 3, algorithm: concurrency, ttl: 1h, on_store_failure: deny } }]",
        },
        settings: { "envoy-config": "limits", store: slow.url, "store-deadline": "30s" },
      });
      const envoy = await startEnvoy({
        limiter: service.grpc,
        app: app.at,
        domain: "d",
        rateLimits: [{ actions: [pool] }, { actions: [lease], apply_on_stream_done: true }],
      });
      const abandoned = async () => {
        const metrics = await (await fetch(`${service.http}/metrics`)).text();
        return Number(/given_back_total\{outcome="abandoned"\} (\d+)/.exec(metrics)?.[1] ?? 0);
      };
      // Whether a client leaves before or after Sluice is asked is up to the machine: rounds go on until enough left in between.
      slow.latencyMs = 500;
      for (let rounds = 0; (await abandoned()) < 6 && rounds < 60; rounds++) {
        const clients = [1, 2, 3].map((one) =>
          fetch(envoy.url, { signal: AbortSignal.timeout(50 * one * (1 + (rounds % 3))) }),
        );
        await Promise.allSettled(clients);
      }
      expect(await abandoned()).toBeGreaterThanOrEqual(6);
      slow.latencyMs = 0;
      let statuses: number[] = [];
      for (let tries = 0; tries < 200; tries++) {
        statuses = await Promise.all([1, 2, 3].map(async () => (await fetch(envoy.url)).status));
        if (!statuses.includes(429)) break;
        await sleep(50);
      }
      expect(statuses).toEqual([200, 200, 200]);
      await envoy.stop();
      await redis.stop();
      app.close();
    },
  );

  test("a header as long as Envoy takes is limited like any other where Envoy fails open", async () => {
    const app = await startApp((_request, response) => response.end("ok"));
    await using service = await startTestService({
      files: {
        "limits/d.yaml":
          "domain: d\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: 1 } }, { key: team, rate_limit: { unit: year, requests_per_unit: 1 } }]",
      },
      settings: { "envoy-config": "limits" },
    });
    const from = (name: string) => ({
      actions: [{ request_headers: { header_name: "x-user", descriptor_key: name } }],
    });
    const envoy = await startEnvoy({
      limiter: service.grpc,
      app: app.at,
      domain: "d",
      rateLimits: [from("user"), from("team")],
      failureModeDeny: [false],
    });
    const headers = { "x-user": "x".repeat(55_000) };
    // The application takes no such header, which shows that it got the request.
    expect((await fetch(envoy.url, { headers })).status).toBe(431);
    for (let i = 0; i < 5; i++) expect((await fetch(envoy.url, { headers })).status).toBe(429);
    await envoy.stop();
    app.close();
  });

  describe.skipIf(whyMissing("redis"))("restarts", () => {
    test("of two instances, one after the other: no 5xx, where Envoy fails open and where it fails closed", async () => {
      const app = await startApp((_request, response) => response.end("ok"));
      const redis = await startRedis();
      const ports = [String(await freePort()), String(await freePort())];
      const start = (grpcPort: string) =>
        startServiceProcess({
          files: {
            "limits/d.yaml":
              "domain: d\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: 1000000 } }]",
          },
          settings: { "envoy-config": "limits", store: redis.url, "grpc-port": grpcPort, "drain-delay": "4s" },
        });
      const services = [await start(ports[0]!), await start(ports[1]!)];
      const envoy = await startEnvoy({
        limiter: ports.map((port) => `127.0.0.1:${port}`),
        app: app.at,
        domain: "d",
        rateLimits: byUser,
        failureModeDeny: [false, true],
      });
      const counts = new Map<number, number>();
      const listeners = envoy.urls.map((url) => new LoadConnections({ url, count: 4 }));
      let running = true;
      const load = Array.from({ length: 8 }, async (_, i) => {
        while (running) {
          const { status } = await listeners[i % 2]!.send("GET", "/", { headers: "x-user: all\r\n" });
          counts.set(status, (counts.get(status) ?? 0) + 1);
        }
      });
      const seen = () => [...counts.values()].reduce((sum, count) => sum + count, 0);
      const more = async (): Promise<void> => {
        const least = seen() + 150;
        while (seen() < least) await sleep(20);
      };
      await more();
      for (const at of [0, 1]) {
        expect(await services[at]!.end("SIGTERM")).toBe(0);
        await more();
        services[at] = await start(ports[at]!);
        // Envoy finds it healthy, and asks it again.
        const asked = async () =>
          /sluice_requests_total\{[^}]*transport="grpc"/.test(
            await (await fetch(`${services[at]!.http}/metrics`)).text(),
          );
        while (!(await asked())) await sleep(50);
        await more();
      }
      running = false;
      await Promise.all(load);
      expect([...counts.keys()]).toEqual([200]);
      await envoy.stop();
      for (const service of services) await service.end();
      await redis.stop();
      app.close();
    });

    test("of Redis and of Sluice: no 5xx where Envoy fails open", async () => {
      const app = await startApp((_request, response) => response.end("ok"));
      const redis = await startRedis();
      const grpcPort = String(await freePort());
      const settings = { "envoy-config": "limits", store: redis.url, "grpc-port": grpcPort };
      const files = {
        "limits/d.yaml":
          "domain: d\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: 1000000 } }]",
      };
      let service = await startServiceProcess({ files, settings });
      const envoy = await startEnvoy({
        limiter: `127.0.0.1:${grpcPort}`,
        app: app.at,
        domain: "d",
        rateLimits: byUser,
        failureModeDeny: [false, true],
      });
      const counts = envoy.urls.map(() => new Map<number, number>());
      const more = async (): Promise<void> => {
        const seen = () => counts.map((count) => [...count.values()].reduce((sum, one) => sum + one, 0));
        const least = seen().map((count) => count + 200);
        await expect.poll(() => seen().every((count, i) => count >= least[i]!), { timeout: 60_000 }).toBe(true);
      };
      let running = true;
      const load = envoy.urls.map(async (url, i) => {
        const connections = new LoadConnections({ url, count: 8 });
        await Promise.all(
          Array.from({ length: 8 }, async () => {
            while (running) {
              const { status } = await connections.send("GET", "/", { headers: "x-user: all\r\n" });
              counts[i]!.set(status, (counts[i]!.get(status) ?? 0) + 1);
            }
          }),
        );
      });
      await more();
      await redis.restart();
      await more();
      const duringRedis = counts.map((count) => Object.fromEntries(count));
      await service.end("SIGTERM");
      service = await startServiceProcess({ files, settings });
      await more();
      running = false;
      await Promise.all(load);
      // The store's outage is answered by policy, on either listener.
      for (const seen of duringRedis) expect(Object.keys(seen)).toEqual(["200"]);
      expect([...counts[0]!.keys()]).toEqual([200]);
      await envoy.stop();
      await service.end();
      await redis.stop();
      app.close();
    });
  });
});
