/** SIGHUP to a service with workers: each is replaced by a new one, and no client sees it. */
import type { ChildProcess } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { COLLECTOR_FLAGS } from "../../packages/server/src/service/collector-flags.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { startRedis } from "../harness/redis-server.js";
import { LoadConnections } from "./load-connections.js";
import { accepts, startApp, startEnvoy } from "./real-envoy.js";
import { postJson, type ServiceProcess, startServiceProcess } from "./running-service.js";

const limits = "domain: d\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: 1000000 } }]";
const byUser = [{ actions: [{ request_headers: { header_name: "x-user", descriptor_key: "user" } }] }];

function workersOf({ child }: ServiceProcess): string[] {
  return readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim().split(" ").sort();
}

async function until(service: ServiceProcess, text: string): Promise<void> {
  await expect.poll(service.output, { timeout: 60_000 }).toContain(text);
}

describe.skipIf(whyMissing("redis"))("a rolling restart", () => {
  test.skipIf(whyMissing("envoy"))(
    "loses no request: behind an Envoy that fails closed, on connections that are kept, and on new ones",
    async () => {
      const app = await startApp((_request, response) => response.end("ok"));
      await using redis = await startRedis();
      const service = await startServiceProcess({
        files: { "limits/d.yaml": limits },
        settings: { workers: "2", "envoy-config": "limits", store: redis.url, "store-deadline": "10s" },
      });
      const before = workersOf(service);
      const envoy = await startEnvoy({
        limiter: service.grpc,
        app: app.at,
        domain: "d",
        rateLimits: byUser,
        failureModeDeny: [true],
        timeout: "30s",
      });
      const outcomes = new Map<string, number>();
      let running = true;
      const goOn = async (send: () => Promise<{ status: number }>): Promise<void> => {
        while (running) {
          const outcome = await send().then(({ status }) => String(status), String);
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
          await sleep(2);
        }
      };
      const proxied = new LoadConnections({ url: envoy.url, count: 4 });
      const kept = new LoadConnections({ url: service.http, count: 4 });
      const body = JSON.stringify({ attributes: { user: "x" } });
      const fresh = { connection: "close" };
      const load = [
        ...Array.from({ length: 4 }, () => goOn(() => proxied.send("GET", "/", { headers: "x-user: all\r\n" }))),
        ...Array.from({ length: 2 }, () => goOn(() => kept.send("POST", "/v1/check", { body }))),
        ...Array.from({ length: 2 }, () => goOn(() => postJson(`${service.http}/v1/check`, body, fresh))),
        goOn(() => fetch(`${service.http}/readyz`)),
      ];
      await expect.poll(() => outcomes.get("200"), { timeout: 30_000 }).toBeGreaterThan(200);
      service.child.kill("SIGHUP");
      await until(service, "rolling restart done");
      const after = workersOf(service);
      const answered = outcomes.get("200")!;
      await expect.poll(() => outcomes.get("200"), { timeout: 30_000 }).toBeGreaterThan(answered + 200);
      running = false;
      await Promise.all(load);
      expect([...outcomes.keys()], JSON.stringify([...outcomes])).toEqual(["200"]);
      expect(after).toHaveLength(2);
      expect(after.filter((pid) => before.includes(pid))).toEqual([]);
      for (const pid of after) {
        const given = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        expect(given).toEqual(expect.arrayContaining([...COLLECTOR_FLAGS]));
      }
      await envoy.stop();
      expect(await service.end(), service.output()).toBe(0);
      app.close();
    },
  );

  test("a service that is told to end while a worker starts ends, with that worker", async () => {
    await using redis = await startRedis();
    const service = await startServiceProcess({ settings: { workers: "2", store: redis.url } });
    const before = workersOf(service);
    process.kill(Number(before[0]), "SIGKILL");
    // Its successor is there, and not up yet.
    await expect
      .poll(() => workersOf(service).filter((pid) => !before.includes(pid)), { timeout: 60_000 })
      .toHaveLength(1);
    expect(await service.end(), service.output()).toBe(0);
  });

  test("that is asked for during the start does not end it", async () => {
    await using redis = await startRedis();
    const grpcPort = await freePort();
    const spawned: ChildProcess[] = [];
    const started = startServiceProcess(
      { settings: { workers: "2", store: redis.url, "grpc-port": String(grpcPort) } },
      (child) => spawned.push(child),
    );
    // The ports open first, long before a worker is there.
    while (!(await accepts(grpcPort))) await sleep(5);
    spawned[0]!.kill("SIGHUP");
    const service = await started;
    expect(await service.end(), service.output()).toBe(0);
  });

  test("brings the settings of now; one that does not start changes nothing, and a port cannot move", async () => {
    await using redis = await startRedis();
    const service = await startServiceProcess({
      files: { "sluice.yaml": "" },
      settings: { workers: "2", store: redis.url, "store-deadline": "2s" },
    });
    const settings = join(service.folder, "sluice.yaml");
    const check = async () => (await postJson(`${service.http}/v1/check`, { attributes: { user: "x" } })).status;
    const before = workersOf(service);

    writeFileSync(settings, "log-level: loud");
    service.child.kill("SIGHUP");
    await until(service, "log-level in sluice.yaml: expected");
    writeFileSync(settings, "metrics-address: 127.0.0.1:9");
    service.child.kill("SIGHUP");
    await until(service, "metrics-address: expected the address that is open, got 127.0.0.1:9");
    await expect.poll(() => workersOf(service), { timeout: 30_000 }).toEqual(before);
    expect(await check()).toBe(200);

    writeFileSync(settings, "api-token: a-token-that-is-long-enough-for-this");
    service.child.kill("SIGHUP");
    await until(service, "rolling restart done");
    expect(await check()).toBe(401);
    expect(await service.end(), service.output()).toBe(0);
  });
});
