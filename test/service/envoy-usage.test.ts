/** Usage-based limits: Envoy looks with 0 when a request starts and charges what it used when the stream is done. As the reference answers. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { connectEnvoy, descriptor, type EnvoyClient } from "./envoy-client.js";
import { postJson, type RunningService, startTestService } from "./running-service.js";

const OK = 1;
const OVER_LIMIT = 2;

const usage = `
domain: ai
descriptors:
  - { key: fixed, rate_limit: { requests_per_unit: 1000, unit: year } }
  - { key: rolling, rate_limit: { requests_per_unit: 1000, algorithm: rolling-window, window: 300d } }
  - { key: sliding, rate_limit: { requests_per_unit: 1000, algorithm: sliding-counter, window: 300d } }
  - { key: bucket, rate_limit: { requests_per_unit: 1000, algorithm: token-bucket, window: 300d } }
  - { key: gcra, rate_limit: { requests_per_unit: 1000, algorithm: gcra, window: 300d } }
  - { key: nothing, rate_limit: { requests_per_unit: 0, unit: year } }
  - { key: counts-refused, rate_limit: { requests_per_unit: 3, unit: year, count_refused: true } }
  - { key: never-late, rate_limit: { requests_per_unit: 1000, unit: year, count_refused: false } }
`;

const stores = [
  ["memory", undefined],
  ["redis", whyMissing("redis")],
] as const;

describe.each(stores)("with the %s store", (kind, missing) => {
  describe.skipIf(missing)("a limit of 1000", () => {
    let redis: RedisServer | undefined;
    let service: RunningService;
    let envoy: EnvoyClient;
    beforeAll(async () => {
      redis = kind === "redis" ? await startRedis() : undefined;
      const store = redis === undefined ? {} : { store: redis.url, "store-deadline": "5s" };
      service = await startTestService({
        files: { "limits/ai.yaml": usage },
        settings: { "envoy-config": "limits", ...store },
      });
      envoy = connectEnvoy(service.grpc);
    });
    afterAll(async () => {
      envoy.close();
      await service.close();
      await redis?.stop();
    });

    let users = 0;
    const hitsOf = async (key: string, hits: readonly (number | string | undefined)[], user = `u${users++}`) => {
      const codes: number[] = [];
      for (const value of hits) {
        const one = descriptor({ [key]: user }, value === undefined ? {} : { hitsAddend: { value } });
        codes.push((await envoy.shouldRateLimit({ domain: "ai", descriptors: [one] })).overallCode);
      }
      return codes;
    };

    test.each(["fixed", "rolling", "sliding", "bucket", "gcra"])(
      "%s: what was used is counted in full, and looks are over from then on",
      async (key) => {
        expect(await hitsOf(key, [0, 600, 600, 0, 0])).toEqual([OK, OK, OVER_LIMIT, OVER_LIMIT, OVER_LIMIT]);
        expect(await hitsOf(key, [0, 1000, 0, 1])).toEqual([OK, OK, OK, OVER_LIMIT]);
        expect(await hitsOf(key, ["18446744073709551615", 0])).toEqual([OVER_LIMIT, OVER_LIMIT]);
      },
    );

    test("a limit of 0 passes a look until something was used", async () => {
      expect(await hitsOf("nothing", [0, 5, 0])).toEqual([OK, OVER_LIMIT, OVER_LIMIT]);
    });

    test("count_refused counts refused plain hits too, or no refused hits at all", async () => {
      const refused = await hitsOf("counts-refused", [undefined, undefined, undefined, undefined, 0]);
      expect(refused).toEqual([OK, OK, OK, OVER_LIMIT, OVER_LIMIT]);
      expect(await hitsOf("never-late", [600, 600, 0, 400])).toEqual([OK, OVER_LIMIT, OK, OK]);
      expect(await hitsOf("fixed", [999, undefined, undefined, 0])).toEqual([OK, OK, OVER_LIMIT, OK]);
    });

    test("a look beside a limit that refuses changes nothing, a late charge is counted all the same", async () => {
      const [used, full] = ["used", "full"];
      await hitsOf("fixed", [1000], full);
      const both = (hits: number) => ({
        domain: "ai",
        descriptors: [descriptor({ fixed: full }), descriptor({ rolling: used }, { hitsAddend: { value: hits } })],
      });
      expect((await envoy.shouldRateLimit(both(700))).overallCode).toBe(OVER_LIMIT);
      expect(await hitsOf("rolling", [0, 301, 0], used)).toEqual([OK, OVER_LIMIT, OVER_LIMIT]);
    });
  });
});

test("a rule with an estimate charges it, for nobody settles; or what a descriptor has under the cost's name", async () => {
  await using service = await startTestService({
    rules: [
      {
        id: "tokens",
        key: ["org"],
        algorithm: "fixed-window",
        limit: 1_000,
        window: "1d",
        cost: { attribute: "tokens" },
        estimate: { default: 200 },
      },
    ],
  });
  const envoy = connectEnvoy(service.grpc);
  const left = async () =>
    (await postJson(`${service.http}/v1/peek`, { attributes: { org: "acme" }, cost: 0 })).body.remaining;
  const ask = (entries: Record<string, string>) =>
    envoy.shouldRateLimit({ domain: "ai", descriptors: [descriptor(entries)] });
  expect([(await ask({ org: "acme" })).overallCode, await left()]).toEqual([OK, 800]);
  expect([(await ask({ org: "acme", tokens: "40" })).overallCode, await left()]).toEqual([OK, 760]);
  expect([(await ask({ org: "acme", tokens: "761" })).overallCode, await left()]).toEqual([OVER_LIMIT, 760]);
  envoy.close();
});
