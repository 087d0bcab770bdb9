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
  - { key: places, rate_limit: { requests_per_unit: 3, algorithm: concurrency, ttl: 5m } }
  - { key: rolling, rate_limit: { requests_per_unit: 3, algorithm: rolling-window, window: 5m } }
  - { key: fixed, rate_limit: { requests_per_unit: 3, unit: year } }
  - { key: bucket, rate_limit: { requests_per_unit: 3, algorithm: token-bucket, window: 365d } }
`;

describe.skipIf(whyMissing("redis"))("a fleet of two", () => {
  let redis: RedisServer;
  const instances: RunningService[] = [];
  const clients: EnvoyClient[] = [];

  beforeAll(async () => {
    redis = await startRedis();
    for (let i = 0; i < 2; i++) {
      const instance = await startTestService({
        rules: [{ id: "own-places", key: ["worker"], algorithm: "concurrency", limit: 2, ttl: "5m" }],
        files: { "fleet.yaml": fleet },
        settings: { store: redis.url, "store-deadline": "2s", "envoy-config": "." },
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

  test("a request that gives back with all its descriptors does so under Sluice's own rules too, and with some of them does not", async () => {
    const worker = descriptor({ worker: "w" });
    for (let i = 0; i < 2; i++) expect((await ask(0, worker)).overallCode).toBe(OK);
    expect((await ask(1, worker)).overallCode).toBe(OVER_LIMIT);
    expect((await ask(1, { ...worker, isNegativeHits: true })).overallCode).toBe(OK);
    expect((await ask(0, worker)).overallCode).toBe(OK);
    const mixed = await ask(0, worker, descriptor({ fixed: "mixed" }, { isNegativeHits: true }));
    expect(mixed.overallCode).toBe(OVER_LIMIT);
  });

  test("a limit that the request brings is given back as it was counted", async () => {
    const own = (more: Json = {}) => descriptor({ brought: "y" }, { limit: { requestsPerUnit: 2, unit: 5 }, ...more });
    for (let i = 0; i < 2; i++) expect((await ask(0, own())).overallCode).toBe(OK);
    expect((await ask(1, own())).overallCode).toBe(OVER_LIMIT);
    await ask(1, own({ isNegativeHits: true }));
    expect((await ask(0, own())).overallCode).toBe(OK);
  });

  test("10 places stay 10 while requests end in any order on any instance, over many terms of a lease", async () => {
    const ttlMs = 1_000;
    const short = await startTestService({
      rules: [{ id: "busy", key: ["busy"], algorithm: "concurrency", limit: 10, ttl: `${ttlMs}ms` }],
      settings: { store: redis.url, "store-deadline": "2s" },
    });
    const client = connectEnvoy(short.grpc);
    const call = async (more: Json = {}) =>
      (await client.shouldRateLimit({ domain: "d", descriptors: [descriptor({ busy: "z" }, more)] })).overallCode;
    const fill = async (): Promise<number[]> => {
      await call({ isNegativeHits: true, hitsAddend: { value: 10 } });
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
      await call({ isNegativeHits: true });
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
