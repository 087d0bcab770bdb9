/** Envoy's rate limit service over real gRPC: the semantics of envoyproxy/ratelimit, and what its users ask for beyond it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeTempFolder } from "../harness/leash.js";
import { connectEnvoy, descriptor, type EnvoyClient } from "./envoy-client.js";
import { type Json, postJson, type RunningService, startTestService } from "./running-service.js";

const OK = 1;
const OVER_LIMIT = 2;

/** The reference's own example, and one of each thing that its files can say. */
const shop = `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 3 }
    descriptors:
      - key: path
        value: /pay
        rate_limit: { unit: HOUR, requests_per_unit: 1, name: pay }
  - key: user
    value: vip
    rate_limit: { unlimited: true }
  - key: user
    value: "test-*"
    rate_limit: { unit: hour, requests_per_unit: 2 }
    share_threshold: true
  - key: user
    value: "*-bot"
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: user
    value: trusted
  - key: shadowed
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: gold
    rate_limit: { unit: hour, requests_per_unit: 1, name: gold, replaces: [{ name: base }] }
  - key: base
    rate_limit: { unit: hour, requests_per_unit: 1, name: base }
  - key: quota
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: spare
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: boundless
    rate_limit: { unlimited: true, name: base }
  - key: spare_shadow
    quota_mode: true
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: a
    rate_limit: null
    descriptors: [{ key: b_c, rate_limit: { unit: hour, requests_per_unit: 1 } }]
  - key: a_b
    descriptors: [{ key: c, rate_limit: { unit: hour, requests_per_unit: 1 } }]
  - key: rolling
    rate_limit: { requests_per_unit: 2, algorithm: rolling-window, window: 30s }
  - key: places
    rate_limit: { requests_per_unit: 1, algorithm: concurrency, ttl: 1m }
  - key: weekly
    rate_limit: { unit: week, requests_per_unit: 5 }
  - key: refundable
    rate_limit: { unit: week, requests_per_unit: 5, negative_hits: true }
`;

let folder: string;
let service: RunningService;
let envoy: EnvoyClient;

beforeAll(async () => {
  folder = makeTempFolder("envoy");
  writeFileSync(join(folder, "shop.yaml"), shop);
  mkdirSync(join(folder, "not-a-file.d"));
  service = await startTestService({
    rules: [
      {
        id: "own-per-tenant",
        key: ["tenant"],
        match: { domain: "shop" },
        algorithm: "fixed-window",
        limit: 2,
        window: "1h",
      },
      { id: "own-by-prototype", key: ["__proto__"], algorithm: "fixed-window", limit: 2, window: "1h" },
    ],
    settings: { "envoy-config": join("..", folder.split("/").at(-1)!) },
  });
  envoy = connectEnvoy(service.grpc);
});
afterAll(async () => {
  envoy.close();
  await service.close();
});

const ask = (...descriptors: Json[]) => envoy.shouldRateLimit({ domain: "shop", descriptors });

describe("the reference's semantics", () => {
  test("a bare key counts each value by itself, and the statuses tell the truth", async () => {
    for (let left = 2; left >= 0; left--) {
      const { overallCode, statuses } = await ask(descriptor({ user: "ann" }));
      expect(overallCode).toBe(OK);
      expect(statuses).toHaveLength(1);
      expect(statuses[0]).toMatchObject({
        code: OK,
        limitRemaining: left,
        currentLimit: { requestsPerUnit: 3, unit: 3 },
      });
    }
    const refused = await ask(descriptor({ user: "ann" }));
    expect(refused).toMatchObject({ overallCode: OVER_LIMIT, statuses: [{ code: OVER_LIMIT, limitRemaining: 0 }] });
    const untilNextHour = Math.ceil((3_600_000 - (Date.now() % 3_600_000)) / 1000);
    expect(Math.abs(Number(refused.statuses[0].durationUntilReset.seconds) - untilNextHour)).toBeLessThanOrEqual(1);
    expect((await ask(descriptor({ user: "bob" }))).overallCode).toBe(OK);
  });

  test("the refusal names the limit, the wait and a body for the client", async () => {
    const response = await ask(descriptor({ user: "ann" }));
    expect(response.statuses[0].currentLimit.name).toBe("shop.user");
    const headers = Object.fromEntries(response.responseHeadersToAdd.map((one: Json) => [one.key, one.value]));
    expect(headers.RateLimit).toMatch(/^"envoy\.shop\.user-[0-9a-f]{10}";r=0;t=\d+$/);
    expect(Number(headers["Retry-After"])).toBeGreaterThan(0);
    expect(JSON.parse(response.rawBody.toString())).toMatchObject({ status: 429 });
  });

  test("nested limits apply only at their depth", async () => {
    expect((await ask(descriptor({ user: "dee", path: "/pay" }))).statuses[0]).toMatchObject({ limitRemaining: 0 });
    expect((await ask(descriptor({ user: "dee", path: "/pay" }))).overallCode).toBe(OVER_LIMIT);
    const other = await ask(descriptor({ user: "dee", path: "/other" }));
    expect(other).toMatchObject({ overallCode: OK, statuses: [{ code: OK, currentLimit: null }] });
    expect((await ask(descriptor({ user: "dee" }))).statuses[0].limitRemaining).toBe(2);
  });

  test("an exact value wins over wildcards, wildcards over the bare key", async () => {
    expect((await ask(descriptor({ user: "vip" }))).statuses[0]).toMatchObject({
      code: OK,
      limitRemaining: 4294967295,
    });
    expect((await ask(descriptor({ user: "trusted" }))).statuses[0].currentLimit).toBeNull();
    expect((await ask(descriptor({ user: "test-a" }))).statuses[0]).toMatchObject({ limitRemaining: 1 });
  });

  test("a shared threshold is one counter for all values of its wildcard", async () => {
    expect((await ask(descriptor({ user: "test-b" }))).statuses[0].limitRemaining).toBe(0);
    expect((await ask(descriptor({ user: "test-c" }))).overallCode).toBe(OVER_LIMIT);
  });

  test("a limit of 0 lets nothing pass", async () => {
    const { overallCode, statuses } = await ask(descriptor({ user: "scraper-bot" }));
    expect(overallCode).toBe(OVER_LIMIT);
    expect(statuses[0]).toMatchObject({ code: OVER_LIMIT, limitRemaining: 0, currentLimit: { requestsPerUnit: 0 } });
    expect(Number(statuses[0].durationUntilReset.seconds)).toBeGreaterThan(0);
  });

  test("shadow mode counts and never refuses", async () => {
    for (let i = 0; i < 3; i++) {
      expect(await ask(descriptor({ shadowed: "x" }))).toMatchObject({
        overallCode: OK,
        statuses: [{ code: OK, limitRemaining: 0 }],
      });
    }
  });

  test("a limit that replaces another takes its place", async () => {
    expect((await ask(descriptor({ base: "x" }))).overallCode).toBe(OK);
    expect((await ask(descriptor({ base: "x" }))).overallCode).toBe(OVER_LIMIT);
    expect(await ask(descriptor({ base: "x" }), descriptor({ gold: "x" }))).toMatchObject({
      overallCode: OK,
      statuses: [{ currentLimit: null }, { currentLimit: { name: "gold" } }],
    });
  });

  test("quotas refuse only when all of them are used up", async () => {
    const both = () => ask(descriptor({ quota: "x" }), descriptor({ spare: "x" }));
    expect((await both()).overallCode).toBe(OK);
    expect(await both()).toMatchObject({ overallCode: OK, statuses: [{ code: OVER_LIMIT }, { code: OK }] });
    expect(await both()).toMatchObject({
      overallCode: OVER_LIMIT,
      statuses: [{ code: OVER_LIMIT }, { code: OVER_LIMIT }],
    });
  });

  test("a descriptor's own hits win over the request's; 0 only looks", async () => {
    const request = (hits: Json) => ({
      domain: "shop",
      hitsAddend: 2,
      descriptors: [descriptor({ user: "hits" }, hits)],
    });
    expect((await envoy.shouldRateLimit(request({}))).statuses[0].limitRemaining).toBe(1);
    expect((await envoy.shouldRateLimit(request({ hitsAddend: { value: 0 } }))).statuses[0].limitRemaining).toBe(1);
    expect((await envoy.shouldRateLimit(request({ hitsAddend: { value: 1 } }))).statuses[0].limitRemaining).toBe(0);
    expect((await envoy.shouldRateLimit(request({ hitsAddend: { value: "18446744073709551615" } }))).overallCode).toBe(
      OVER_LIMIT,
    );
  });

  test("a limit in the request takes the place of the file's, in a known domain", async () => {
    const own = descriptor({ user: "override" }, { limit: { requestsPerUnit: 1, unit: "DAY" } });
    expect((await ask(own)).statuses[0]).toMatchObject({ code: OK, currentLimit: { requestsPerUnit: 1, unit: 4 } });
    expect((await ask(own)).overallCode).toBe(OVER_LIMIT);
    const raised = descriptor({ user: "override" }, { limit: { requestsPerUnit: 5, unit: "DAY" } });
    expect((await ask(raised)).statuses[0]).toMatchObject({ code: OK, limitRemaining: 3 });
    const unknown = await envoy.shouldRateLimit({ domain: "elsewhere", descriptors: [own] });
    expect(unknown).toMatchObject({ overallCode: OK, statuses: [{ code: OK, currentLimit: null }] });
  });

  test("a limit in the request shares the counter of the file's limit with the same unit", async () => {
    const with5 = descriptor({ user: "shared" }, { limit: { requestsPerUnit: 5, unit: "HOUR" } });
    expect((await ask(descriptor({ user: "shared" }))).statuses[0].limitRemaining).toBe(2);
    expect((await ask(with5)).statuses[0]).toMatchObject({ limitRemaining: 3, currentLimit: { requestsPerUnit: 5 } });
    expect((await ask(descriptor({ user: "shared" }))).statuses[0].limitRemaining).toBe(0);
    expect((await ask(descriptor({ user: "shared" }))).overallCode).toBe(OVER_LIMIT);
    expect((await ask(with5)).statuses[0]).toMatchObject({ code: OK, limitRemaining: 1 });
    // Another unit counts in windows of its own, and so do values that share a counter in the file.
    const perDay = descriptor({ user: "shared" }, { limit: { requestsPerUnit: 5, unit: "DAY" } });
    expect((await ask(perDay)).statuses[0].limitRemaining).toBe(4);
    const one = descriptor({ user: "test-override" }, { limit: { requestsPerUnit: 5, unit: "HOUR" } });
    expect((await ask(one)).statuses[0].limitRemaining).toBe(4);
  });

  test("a limit in the request may be one per week", async () => {
    const weekly = descriptor({ user: "override" }, { limit: { requestsPerUnit: 2, unit: 7 } });
    expect((await ask(weekly)).statuses[0]).toMatchObject({ limitRemaining: 1, currentLimit: { unit: 7 } });
  });

  test("an unlimited descriptor stays so when another replaces its name", async () => {
    expect((await ask(descriptor({ boundless: "x" }), descriptor({ gold: "boundless" }))).statuses[0]).toMatchObject({
      code: OK,
      limitRemaining: 4294967295,
    });
  });

  test("a quota in shadow mode is never used up", async () => {
    const both = () => ask(descriptor({ quota: "beside" }), descriptor({ spare_shadow: "x" }));
    for (let i = 0; i < 3; i++) expect((await both()).overallCode).toBe(OK);
  });

  test("unknown domains and descriptors pass; a week is a unit", async () => {
    expect(
      (await envoy.shouldRateLimit({ domain: "elsewhere", descriptors: [descriptor({ user: "ann" })] })).overallCode,
    ).toBe(OK);
    expect((await ask(descriptor({ nothing: "x" }))).statuses[0]).toMatchObject({ code: OK, currentLimit: null });
    expect((await ask(descriptor({ weekly: "x" }))).statuses[0].currentLimit).toMatchObject({
      requestsPerUnit: 5,
      unit: 7,
    });
  });

  test("an empty domain and an empty list are errors of the caller", async () => {
    await expect(envoy.shouldRateLimit({ domain: "", descriptors: [descriptor({ a: "b" })] })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
    });
    await expect(envoy.shouldRateLimit({ domain: "shop", descriptors: [] })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
    });
  });
});

describe("beyond the reference", () => {
  test("a refused request charges none of its descriptors", async () => {
    const request = () => ask(descriptor({ weekly: "siblings" }), descriptor({ user: "ann" }));
    for (let i = 0; i < 4; i++)
      expect(await request()).toMatchObject({
        overallCode: OVER_LIMIT,
        statuses: [{ code: OK }, { code: OVER_LIMIT }],
      });
    expect((await ask(descriptor({ weekly: "siblings" }))).statuses[0].limitRemaining).toBe(4);
  });

  test("the same descriptor twice counts twice", async () => {
    expect((await ask(descriptor({ base: "twice" }), descriptor({ base: "twice" }))).overallCode).toBe(OVER_LIMIT);
    expect((await ask(descriptor({ base: "twice" }))).overallCode).toBe(OK);
  });

  test("joined keys are unambiguous", async () => {
    expect((await ask(descriptor({ a: "1", b_c: "2" }))).overallCode).toBe(OK);
    expect((await ask(descriptor({ a_b: "1", c: "2" }))).overallCode).toBe(OK);
    expect((await ask(descriptor({ a: "1", b_c: "2" }))).overallCode).toBe(OVER_LIMIT);
  });

  test("any window and any algorithm", async () => {
    await ask(descriptor({ rolling: "x" }));
    await ask(descriptor({ rolling: "x" }));
    const refused = await ask(descriptor({ rolling: "x" }));
    expect(refused.overallCode).toBe(OVER_LIMIT);
    expect(Number(refused.statuses[0].durationUntilReset.seconds)).toBeGreaterThanOrEqual(29);
  });

  test("negative hits give back at most what was counted, and only where the limit takes them", async () => {
    const weekly = (more: Json = {}) => ask(descriptor({ weekly: "back" }, more));
    await weekly({ hitsAddend: { value: 3 } });
    const million = { hitsAddend: { value: 1_000_000 }, isNegativeHits: true };
    expect((await weekly(million)).statuses[0].limitRemaining).toBe(2);
    const refundable = (more: Json = {}) => ask(descriptor({ refundable: "x" }, more));
    await refundable({ hitsAddend: { value: 3 } });
    const back = { hitsAddend: { value: 2 }, isNegativeHits: true };
    expect((await refundable(back)).statuses[0].limitRemaining).toBe(4);
    expect((await refundable(million)).statuses[0].limitRemaining).toBe(5);
    expect((await refundable(million)).statuses[0].limitRemaining).toBe(5);
    const metrics = await (await fetch(`${service.http}/metrics`)).text();
    expect(metrics).toContain('sluice_envoy_given_back_total{outcome="ignored"} 2');
    expect(metrics).toContain('sluice_envoy_given_back_total{outcome="given-back"} 2');
  });

  test("a place is given back by the lease that its response carried, and by nothing else", async () => {
    const places = (more: Json = {}) => ask(descriptor({ places: "x" }, more));
    const held = await places();
    expect(held.overallCode).toBe(OK);
    expect((await places()).overallCode).toBe(OVER_LIMIT);
    await places({ isNegativeHits: true });
    expect((await places()).overallCode).toBe(OVER_LIMIT);
    const sluice_lease = held.dynamicMetadata.fields.sluice_lease.stringValue;
    expect((await ask(descriptor({ places: "x", sluice_lease }))).overallCode).toBe(OK);
    expect((await places()).overallCode).toBe(OK);
  });

  test("an entry may have any name, also one that objects have by themselves", async () => {
    const strange = () => ask(descriptor({ constructor: "c" }), { entries: [{ key: "__proto__", value: "p" }] });
    for (let i = 0; i < 2; i++) expect((await strange()).overallCode).toBe(OK);
    expect(await strange()).toMatchObject({ overallCode: OVER_LIMIT, statuses: [{ code: OK }, { code: OVER_LIMIT }] });
  });

  test("Sluice's own rules see the entries and the domain, once for the whole request", async () => {
    const request = () => ask(descriptor({ tenant: "t" }), descriptor({ tenant: "t", user: "zoe" }));
    expect((await request()).statuses[0]).toMatchObject({
      code: OK,
      limitRemaining: 1,
      currentLimit: { name: "own-per-tenant" },
    });
    expect((await request()).overallCode).toBe(OK);
    expect(await request()).toMatchObject({ overallCode: OVER_LIMIT, statuses: [{ code: OVER_LIMIT }, { code: OK }] });
  });
});

describe("/json", () => {
  test("is the same service in proto3 JSON with the reference's statuses", async () => {
    const request = { domain: "shop", descriptors: [{ entries: [{ key: "base", value: "json" }] }] };
    const first = await postJson(`${service.http}/json`, request);
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({
      overallCode: "OK",
      statuses: [
        {
          code: "OK",
          currentLimit: { requestsPerUnit: 1, unit: "HOUR", name: "base" },
          durationUntilReset: expect.stringMatching(/^\d+s$/),
        },
      ],
    });
    const second = await postJson(`${service.http}/json`, request);
    expect(second.status).toBe(429);
    expect(second.body.overallCode).toBe("OVER_LIMIT");
    for (const bad of [
      "{",
      "[]",
      '{"domain":1}',
      '{"domain":"shop"}',
      '{"domain":"shop","descriptors":[{"entries":[{"key":5}]}]}',
    ]) {
      expect((await postJson(`${service.http}/json`, bad)).status).toBe(400);
    }
  });

  test.each([
    [{ hitsAdend: 2 }, "body: expected no field but domain, descriptors, hitsAddend, got hitsAdend"],
    [{ hitsAddend: 1, hits_addend: 1 }, "body: expected hitsAddend once, got it in two spellings"],
    [{ hitsAddend: 2 ** 32 }, "hitsAddend: expected a whole number from 0 to 4294967295"],
    [{ descriptors: [{ is_negative_hits: "yes" }] }, "descriptors[0].isNegativeHits: expected true or false"],
    [{ descriptors: [{ entries: [{ name: "user" }] }] }, "descriptors[0].entries[0]: expected no field but key, value"],
  ])("refuses %j, as the reference does, and names the place", async (wrong, detail) => {
    const request = { domain: "shop", descriptors: [{ entries: [{ key: "base", value: "wrong" }] }], ...wrong };
    const { status, body } = await postJson(`${service.http}/json`, request);
    expect([status, body.detail]).toEqual([400, expect.stringContaining(detail)]);
  });

  test("takes any content type from programs, as the reference does, and JSON alone from a web page", async () => {
    // Bytes have no type of their own.
    const body = Buffer.from('{"domain":"shop","descriptors":[{"entries":[{"key":"unlimited-type","value":"x"}]}]}');
    const send = async (headers: Record<string, string>) =>
      (await fetch(`${service.http}/json`, { method: "POST", body, headers })).status;
    for (const type of ["application/x-www-form-urlencoded", "text/plain", "application/grpc+json"])
      expect(await send({ "content-type": type }), type).toBe(200);
    expect(await send({})).toBe(200);
    const page = { origin: new URL(service.http).origin };
    expect(await send({ ...page, "content-type": "text/plain" })).toBe(415);
    expect(await send({ ...page, "content-type": "application/json" })).toBe(200);
  });
});

describe("the folder of files", () => {
  test("is read again when it changes; a bad edit keeps what was in force", async () => {
    const file = join(folder, "second.yaml");
    const ask = () => envoy.shouldRateLimit({ domain: "second", descriptors: [descriptor({ k: "v" })] });
    expect((await ask()).statuses[0].currentLimit).toBeNull();
    writeFileSync(file, "domain: second\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 9 } }]\n");
    await expect.poll(async () => (await ask()).statuses[0].currentLimit?.requestsPerUnit, { timeout: 5_000 }).toBe(9);
    writeFileSync(
      file,
      "domain: second\ndescriptors: [{ key: k, rate_limit: { unit: fortnight, requests_per_unit: 1 } }]\n",
    );
    await expect
      .poll(async () => (await fetch(`${service.http}/metrics`)).text(), { timeout: 5_000 })
      .toContain('sluice_envoy_config_reloads_total{outcome="failed"} 1');
    expect((await ask()).statuses[0].currentLimit.requestsPerUnit).toBe(9);
    // The numbers change, the count lives on.
    const before = Number((await ask()).statuses[0].limitRemaining);
    writeFileSync(
      file,
      "domain: second\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 20 } }]\n",
    );
    await expect.poll(async () => (await ask()).statuses[0].currentLimit.requestsPerUnit, { timeout: 5_000 }).toBe(20);
    expect(Number((await ask()).statuses[0].limitRemaining)).toBeLessThan(before + 11);
  });
});
