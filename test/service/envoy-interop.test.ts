/** Envoy's rate limit service asked by gRPC's C core and Google's protobuf: no code of ours on their side. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { type Json, type RunningService, startTestService } from "./running-service.js";

const script = fileURLToPath(new URL("envoy-client.py", import.meta.url));

describe.skipIf(whyMissing("grpcio"))("gRPC's C core", () => {
  let service: RunningService;
  beforeAll(async () => {
    service = await startTestService({
      files: {
        "limits/interop.yaml":
          "domain: interop\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: 2, name: yearly, negative_hits: true } }]\n",
      },
      settings: { "envoy-config": "limits" },
    });
  });
  afterAll(() => service.close());

  async function ask(...requests: Json[]): Promise<Json[]> {
    const python = components.grpcio.find()!;
    const { stdout } = await promisify(execFile)(python, [script, service.grpc, JSON.stringify(requests)], {
      timeout: 60_000,
    });
    return JSON.parse(stdout);
  }
  const request = (more: Json = {}) => ({
    domain: "interop",
    descriptors: [{ entries: [{ key: "user", value: "zoë" }], ...more }],
  });

  test("gets decisions, statuses, headers and a body, and gives hits back", async () => {
    const [first, second, third, back, fourth] = await ask(
      request(),
      request(),
      request(),
      request({ isNegativeHits: true }),
      request(),
    );
    expect(first).toMatchObject({
      overallCode: 1,
      statuses: [{ code: 1, limitRemaining: 1, currentLimit: { requestsPerUnit: 2, unit: 6, name: "yearly" } }],
    });
    expect(Number(first.statuses[0].durationUntilReset.seconds)).toBeGreaterThan(0);
    expect(second).toMatchObject({ overallCode: 1 });
    expect(third).toMatchObject({ overallCode: 2, statuses: [{ code: 2 }] });
    expect(third.responseHeadersToAdd.map(({ key }: Json) => key.toLowerCase())).toContain("retry-after");
    expect(JSON.parse(Buffer.from(third.rawBody, "base64").toString())).toMatchObject({ status: 429 });
    expect(back).toMatchObject({ overallCode: 1, statuses: [{ limitRemaining: 1 }] });
    expect(fourth).toMatchObject({ overallCode: 1 });
  });

  test("is told INVALID_ARGUMENT for a request without a domain", async () => {
    expect(await ask({ descriptors: request().descriptors })).toEqual([
      { error: "INVALID_ARGUMENT", details: "domain: expected a name that is not empty" },
    ]);
  });
});
