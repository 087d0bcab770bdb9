/** Load shedding and turns as a gRPC caller sees them: shed calls are over the limit and charge nothing, and nobody is kept waiting. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { connectEnvoy, type EnvoyClient } from "./envoy-client.js";
import { type Json, postJson, type RunningService, startTestService } from "./running-service.js";

const OK = 1;
const OVER_LIMIT = 2;
let service: RunningService;
let envoy: EnvoyClient;

beforeAll(async () => {
  service = await startTestService({
    rules: [
      {
        id: "keep-serving",
        match: { path: "/shed" },
        key: [],
        algorithm: "load-shedding",
        signal: "reported",
        class: { attribute: "criticality", default: "normal" },
      },
      { id: "counted", match: { path: "/shed" }, key: [], algorithm: "fixed-window", limit: 100, window: "3650d" },
      {
        id: "paced",
        match: { path: "/paced" },
        key: ["partner"],
        algorithm: "gcra",
        limit: 1,
        window: "10m",
        burst: 1,
        maxWait: "1h",
      },
    ],
  });
  envoy = connectEnvoy(service.grpc);
});
afterAll(async () => {
  envoy?.close();
  await service?.close();
});

const ask = (attributes: Record<string, string>): Promise<Json> => {
  const entries = Object.entries(attributes).map(([key, value]) => ({ key, value }));
  return envoy.shouldRateLimit({ domain: "edge", descriptors: [{ entries }] });
};

async function used(): Promise<number> {
  const { body } = await postJson(`${service.http}/v1/peek`, {
    attributes: { path: "/shed", criticality: "critical" },
    cost: 0,
  });
  const { limit, remaining } = body.checks.find((check: Json) => check.rule === "counted");
  return limit - remaining;
}

test("a call is shed by the class of its descriptor, and a shed call is charged nowhere", async () => {
  expect((await ask({ path: "/shed" })).overallCode).toBe(OK);
  expect(await used()).toBe(1);
  await postJson(`${service.http}/v1/utilisation`, { value: 1, source: "db-1", ttl: "5m" });
  // The share that passes shrinks over seconds; how many pass until then is the machine's business.
  let passed = 1;
  await vi.waitFor(
    async () => {
      const { overallCode, statuses } = await ask({ path: "/shed" });
      if (overallCode === OK) passed++;
      expect([overallCode, statuses[0].code]).toEqual([OVER_LIMIT, OVER_LIMIT]);
    },
    { timeout: 60_000, interval: 20 },
  );
  expect(await used()).toBe(passed);
  expect((await ask({ path: "/shed", criticality: "critical" })).overallCode).toBe(OK);
  expect(await used()).toBe(passed + 1);
});

test("a call that would have to wait is over the limit at once, and takes no turn from those who wait", async () => {
  const attributes = { path: "/paced", partner: "acme" };
  expect((await ask(attributes)).overallCode).toBe(OK);
  const refused = await ask(attributes);
  expect(refused.overallCode).toBe(OVER_LIMIT);
  await ask(attributes);
  // The next turn is still the first one: within ten minutes, not half an hour away.
  const { body } = await postJson(`${service.http}/v1/check`, { attributes });
  expect(body.allowed).toBe(true);
  expect(body.delayMs).toBeGreaterThan(0);
  expect(body.delayMs).toBeLessThanOrEqual(600_000);
});
