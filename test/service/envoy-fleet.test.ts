/** Two instances of the service that share a Redis, asked by Envoy: what one admitted, the other takes back. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { connectEnvoy, descriptor, type EnvoyClient } from "./envoy-client.js";
import { type Json, type RunningService, startTestService } from "./running-service.js";

const OK = 1;
const OVER_LIMIT = 2;

const fleet = `
domain: fleet
descriptors:
  - { key: places, rate_limit: { negative_hits: true, requests_per_unit: 3, algorithm: concurrency, ttl: 5m } }
  - { key: rolling, rate_limit: { negative_hits: true, requests_per_unit: 3, algorithm: rolling-window, window: 5m } }
  - { key: fixed, rate_limit: { negative_hits: true, requests_per_unit: 3, unit: year } }
  - { key: bucket, rate_limit: { negative_hits: true, requests_per_unit: 3, algorithm: token-bucket, window: 365d } }
`;

const leaseIn = (response: Json): string | undefined =>
  response.dynamicMetadata?.fields.sluice_lease?.stringValue ?? undefined;

describe.skipIf(whyMissing("redis"))("a fleet of two", () => {
  let redis: RedisServer;
  const instances: RunningService[] = [];
  const clients: EnvoyClient[] = [];

  beforeAll(async () => {
    redis = await startRedis();
    for (let i = 0; i < 2; i++) {
      const instance = await startTestService({
        rules: [{ id: "own-places", key: ["worker"], algorithm: "concurrency", limit: 2, ttl: "5m" }],
        files: { "limits/fleet.yaml": fleet },
        settings: { store: redis.url, "store-deadline": "2s", "envoy-config": "limits" },
      });
      instances.push(instance);
      clients.push(connectEnvoy(instance.grpc));
    }
  });
  afterAll(async () => {
    for (const client of clients) client.close();
    for (const instance of instances) await instance.close();
    await redis?.stop();
  });

  const ask = (at: number, ...descriptors: Json[]) => clients[at]!.shouldRateLimit({ domain: "fleet", descriptors });
  const left = async (at: number, one: Json) =>
    Number((await ask(at, { ...one, hitsAddend: { value: 0 } })).statuses[0].limitRemaining);

  test.each(["places", "rolling", "fixed", "bucket"])(
    "hits on a limit by %s are given back by the instance that did not count them, never above the limit",
    async (key) => {
      const one = descriptor({ [key]: "x" });
      for (let i = 0; i < 3; i++) expect((await ask(0, one)).overallCode).toBe(OK);
      expect((await ask(0, one)).overallCode).toBe(OVER_LIMIT);
      const back = await ask(1, { ...one, hitsAddend: { value: 2 }, isNegativeHits: true });
      expect(back).toMatchObject({ overallCode: OK, statuses: [{ code: OK, limitRemaining: 2 }] });
      expect((await ask(1, one)).overallCode).toBe(OK);
      for (let i = 0; i < 5; i++) await ask(1, { ...one, isNegativeHits: true });
      expect(await left(0, one)).toBe(3);
    },
  );

  test("nothing is given back by negative hits where no limit of a file takes them: own rules, limits of requests", async () => {
    const worker = descriptor({ worker: "w" });
    for (let i = 0; i < 2; i++) expect((await ask(0, worker)).overallCode).toBe(OK);
    await ask(1, { ...worker, hitsAddend: { value: 1_000_000 }, isNegativeHits: true });
    expect((await ask(0, worker)).overallCode).toBe(OVER_LIMIT);
    const own = (more: Json = {}) => descriptor({ brought: "y" }, { limit: { requestsPerUnit: 2, unit: 5 }, ...more });
    for (let i = 0; i < 2; i++) expect((await ask(0, own())).overallCode).toBe(OK);
    await ask(1, own({ isNegativeHits: true, hitsAddend: { value: 1_000_000 } }));
    expect((await ask(0, own())).overallCode).toBe(OVER_LIMIT);
  });

  test("a lease is given back through any instance, once, and only by its id", async () => {
    const worker = descriptor({ worker: "leased" });
    const held = [await ask(0, worker), await ask(0, worker)].map(leaseIn);
    expect(held.every((lease) => lease !== undefined)).toBe(true);
    const full = await ask(1, worker);
    expect(full.overallCode).toBe(OVER_LIMIT);
    expect(leaseIn(full)).toBeUndefined();
    const back = (lease: string) => ask(1, descriptor({ worker: "leased", sluice_lease: lease }));
    for (const forged of ["", "nonsense", held[0]!.replace(/^./, (first) => (first === "x" ? "y" : "x")), "a.s.W10"]) {
      expect((await back(forged)).overallCode).toBe(OK);
      expect((await ask(0, worker)).overallCode).toBe(OVER_LIMIT);
    }
    for (let i = 0; i < 3; i++) expect((await back(held[0]!)).overallCode).toBe(OK);
    expect((await ask(0, worker)).overallCode).toBe(OK);
    expect((await ask(0, worker)).overallCode).toBe(OVER_LIMIT);
    const metrics = await (await fetch(`${instances[1]!.http}/metrics`)).text();
    expect(metrics).toContain('sluice_envoy_given_back_total{outcome="released"} 1');
    expect(metrics).toContain('sluice_envoy_given_back_total{outcome="unknown"} 6');
  });

  test("10 places stay 10 while requests end in any order on any instance, over many terms of a lease", async () => {
    const ttlMs = 1_000;
    const short = await startTestService({
      rules: [{ id: "busy", key: ["busy"], algorithm: "concurrency", limit: 10, ttl: `${ttlMs}ms` }],
      settings: { store: redis.url, "store-deadline": "2s" },
    });
    const client = connectEnvoy(short.grpc);
    let leases: string[] = [];
    const call = async (): Promise<number> => {
      const response = await client.shouldRateLimit({ domain: "d", descriptors: [descriptor({ busy: "z" })] });
      const lease = leaseIn(response);
      if (lease !== undefined) leases.push(lease);
      return response.overallCode;
    };
    const end = async (count: number): Promise<void> => {
      for (const sluice_lease of leases.splice(0, count)) {
        await client.shouldRateLimit({ domain: "d", descriptors: [descriptor({ sluice_lease })] });
      }
    };
    const fill = async (): Promise<number[]> => {
      await end(leases.length);
      leases = [];
      const begun: number[] = [];
      for (let i = 0; i < 10; i++) {
        begun.push(performance.now());
        expect(await call()).toBe(OK);
      }
      return begun;
    };
    let begun = await fill();
    let turns = 0;
    const untilMs = performance.now() + 2.5 * ttlMs;
    while (performance.now() < untilMs || turns < 20) {
      await end(1);
      begun = [...begun.slice(1), performance.now()];
      const answers = [await call(), await call()];
      // On a machine that stood still, leases ended by themselves, rightly.
      if (performance.now() - begun[0]! > ttlMs) begun = await fill();
      // One came free, so one may come; an eleventh may not.
      else expect(answers).toEqual([OK, OVER_LIMIT]);
      turns++;
    }
    client.close();
    await short.close();
  });
});
