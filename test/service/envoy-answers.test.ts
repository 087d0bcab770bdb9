/** What Envoy is answered, as the settings have it: fields, body, metadata, shadow, quotas, an error while the store is away. */
import { status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { connectEnvoy, descriptor } from "./envoy-client.js";
import { type Json, postJson, startTestService } from "./running-service.js";

const OK = 1;
const OVER_LIMIT = 2;

const limits = `
domain: shop
descriptors:
  - { key: named, metadata: { team: pay, deep: { a: 1 } }, rate_limit: { unit: hour, requests_per_unit: 1, name: 'checkout "1"' } }
  - { key: plain, metadata: { team: other, deep: { b: [x, true, null] } }, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - { key: quota, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 1, name: first-quota } }
  - { key: spare, quota_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
`;

async function withEnvoy<T>(
  settings: Record<string, string>,
  work: (ask: (...descriptors: Json[]) => Promise<Json>, http: string) => Promise<T>,
): Promise<T> {
  await using service = await startTestService({
    files: { "limits/shop.yaml": limits },
    settings: { "envoy-config": "limits", ...settings },
  });
  const envoy = connectEnvoy(service.grpc);
  try {
    return await work((...descriptors) => envoy.shouldRateLimit({ domain: "shop", descriptors }), service.http);
  } finally {
    envoy.close();
  }
}

const fieldsOf = (response: Json): Record<string, string> =>
  Object.fromEntries(response.responseHeadersToAdd.map(({ key, value }: Json) => [key, value]));

test("policies are named as the file names them, and a refusal by quotas carries the fields too", () =>
  withEnvoy({}, async (ask) => {
    const named = () => ask(descriptor({ named: "x" }));
    expect(fieldsOf(await named())).toMatchObject({
      "RateLimit-Policy": '"checkout _1_";q=1;w=3600',
      RateLimit: expect.stringMatching(/^"checkout _1_";r=0;t=\d+$/),
    });
    const refused = await named();
    expect(JSON.parse(refused.rawBody.toString())).toMatchObject({
      "violated-policies": ["checkout _1_"],
      detail: expect.stringContaining('"checkout _1_"'),
    });
    const quotas = () => ask(descriptor({ quota: "x" }), descriptor({ spare: "x" }));
    expect((await quotas()).overallCode).toBe(OK);
    const usedUp = await quotas();
    expect(usedUp.overallCode).toBe(OVER_LIMIT);
    const fields = fieldsOf(usedUp);
    expect(fields["RateLimit-Policy"]).toBe('"first-quota";q=1;w=3600, "shop.spare";q=1;w=86400');
    expect(fields.RateLimit).toMatch(/^"(first-quota|shop\.spare)";r=0;t=\d+$/);
    expect(Number(fields["Retry-After"])).toBeLessThanOrEqual(3600);
    expect(JSON.parse(usedUp.rawBody.toString())).toMatchObject({
      status: 429,
      "violated-policies": ["first-quota", "shop.spare"],
    });
  }));

test("fields and body can be turned off, or be the reference's three", async () => {
  await withEnvoy({ "envoy-headers": "off", "envoy-body": "false" }, async (ask) => {
    await ask(descriptor({ named: "x" }));
    const refused = await ask(descriptor({ named: "x" }));
    expect(refused.overallCode).toBe(OVER_LIMIT);
    expect(refused.responseHeadersToAdd).toEqual([]);
    expect(refused.rawBody).toHaveLength(0);
  });
  await withEnvoy({ "envoy-headers": "X-Limit,X-Left,X-Reset" }, async (ask) => {
    const both = await ask(descriptor({ named: "x" }), descriptor({ plain: "x" }));
    expect(fieldsOf(both)).toMatchObject({ "X-Limit": "1", "X-Left": "0" });
    expect(Number(fieldsOf(both)["X-Reset"])).toBeGreaterThan(0);
    expect(fieldsOf(await ask(descriptor({ unknown: "x" })))).toEqual({});
  });
});

test("dynamic metadata tells the domain, the descriptors and the joined metadata of those that passed", () =>
  withEnvoy({ "envoy-dynamic-metadata": "true" }, async (_ask, http) => {
    const request = {
      domain: "shop",
      hitsAddend: 1,
      descriptors: [
        { entries: [{ key: "named", value: "m" }] },
        { entries: [{ key: "plain", value: "m" }], hitsAddend: 1 },
      ],
    };
    const first = await postJson(`${http}/json`, request);
    expect(first.body.dynamicMetadata).toEqual({
      domain: "shop",
      descriptors: [{ entries: ["named=m"] }, { entries: ["plain=m"], hitsAddend: 1 }],
      hitsAddend: 1,
      metadata: { team: "pay", deep: { a: 1, b: ["x", true, null] } },
    });
    const second = await postJson(`${http}/json`, request);
    expect(second.status).toBe(429);
    expect(second.body.dynamicMetadata.metadata).toEqual({ team: "other", deep: { b: ["x", true, null] } });
  }));

test("global shadow mode refuses nothing, and statuses tell what would be", () =>
  withEnvoy({ "envoy-shadow-mode": "true" }, async (ask) => {
    await ask(descriptor({ named: "x" }));
    for (let i = 0; i < 3; i++) {
      const over = await ask(descriptor({ named: "x" }));
      expect(over).toMatchObject({ overallCode: OK, statuses: [{ code: OVER_LIMIT }] });
      expect(over.rawBody).toHaveLength(0);
      expect(fieldsOf(over)["Retry-After"]).toBeUndefined();
    }
  }));

test("global quota mode refuses only what has used up every limit, those of requests among them", () =>
  withEnvoy({ "envoy-quota-mode": "true" }, async (ask) => {
    const both = () => ask(descriptor({ named: "x" }), descriptor({ plain: "x" }));
    for (let i = 0; i < 2; i++) expect((await both()).overallCode).toBe(OK);
    expect((await both()).overallCode).toBe(OVER_LIMIT);
    expect((await ask(descriptor({ named: "x" }), descriptor({ unknown: "x" }))).overallCode).toBe(OK);
    const brought = () => ask(descriptor({ a: "x" }, { limit: { requestsPerUnit: 1, unit: "DAY" } }));
    expect((await brought()).overallCode).toBe(OK);
    expect((await brought()).overallCode).toBe(OVER_LIMIT);
  }));

test("a store that is away is an error where Envoy's failure mode should decide", async () => {
  const away = { store: "redis://127.0.0.1:1", "store-deadline": "50ms" };
  await withEnvoy({ ...away, "envoy-store-failure": "error" }, async (ask, http) => {
    await expect(ask(descriptor({ named: "x" }))).rejects.toMatchObject({ code: status.UNAVAILABLE });
    const body = { domain: "shop", descriptors: [descriptor({ named: "x" })] };
    expect((await postJson(`${http}/json`, body)).status).toBe(503);
  });
  await withEnvoy(away, async (ask) => expect((await ask(descriptor({ named: "x" }))).overallCode).toBe(OK));
});
