/**
 * The same request gets the same verdict, whatever door it comes in by: one table of cases, five transports; and 10 000 requests under
 * the same rule admit the same number through each.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createLimiter, type Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectEnvoy, descriptor, type EnvoyClient } from "./envoy-client.js";
import { LoadConnections } from "./load-connections.js";
import { type RunningService, startTestService } from "./running-service.js";

/** Attributes come from headers here, so that every transport can say the same thing. */
const mapping = `
attributes:
  user: { header: x-user }
  tenant: { header: x-tenant }
  tier: { header: x-tier }
`;

const rules: Rule[] = [
  { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 3, window: "1d" },
  {
    id: "free-tier",
    key: ["tenant"],
    match: { tier: "free" },
    algorithm: "token-bucket",
    limit: 2,
    refill: { amount: 1, every: "1d" },
  },
  { id: "watched", key: ["user"], algorithm: "gcra", limit: 1, window: "1d", mode: "shadow" },
  { id: "blocked", key: ["user"], match: { user: "mallory*" }, algorithm: "rolling-window", limit: 1, window: "1d" },
  { id: "ten-thousand", key: ["load"], algorithm: "rolling-window", limit: 777, window: "1d", storage: "packed" },
];

type Wanted = Readonly<Record<string, string>>;
/** Whether the request passed. */
type Ask = (attributes: Wanted) => Promise<boolean>;

const cases: { name: string; requests: Wanted[]; verdicts: boolean[] }[] = [
  {
    name: "under the limit, then over it",
    requests: Array(5).fill({ user: "ann" }),
    verdicts: [true, true, true, false, false],
  },
  {
    name: "two users do not share",
    requests: [...Array(3).fill({ user: "bob" }), { user: "cyd" }, { user: "bob" }],
    verdicts: [true, true, true, true, false],
  },
  {
    name: "the strictest of two rules refuses",
    requests: Array(3).fill({ user: "dee", tenant: "t1", tier: "free" }),
    verdicts: [true, true, false],
  },
  {
    name: "a refusal by one rule charges no other",
    requests: [...Array(4).fill({ user: "eve", tenant: "t2", tier: "free" }), { user: "eve" }, { user: "eve" }],
    verdicts: [true, true, false, false, true, false],
  },
  {
    name: "a match on another value does not apply",
    requests: Array(3).fill({ tenant: "t3", tier: "paid" }),
    verdicts: [true, true, true],
  },
  { name: "a glob applies", requests: Array(2).fill({ user: "mallory-7" }), verdicts: [true, false] },
  { name: "no rule applies", requests: Array(5).fill({ other: "x" }), verdicts: Array(5).fill(true) },
];

const transports = ["library", "HTTP", "gRPC", "forward-auth", "proxy"] as const;

describe.each(transports)("%s", (transport) => {
  let upstream: Server;
  let service: RunningService;
  let envoy: EnvoyClient;
  let ask: Ask;

  beforeAll(async () => {
    upstream = createServer((_request, response) => response.end("upstream"));
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    service = await startTestService({
      rules,
      files: { "attributes.yaml": `${mapping}  load: { header: x-load }\n  other: { header: x-other }\n` },
      settings: {
        attributes: "attributes.yaml",
        upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
      },
    });
    envoy = connectEnvoy(service.grpc);
    ask = askThrough();
  });
  afterAll(async () => {
    envoy.close();
    await service.close();
    upstream.close();
  });

  function askThrough(): Ask {
    const limiter = createLimiter({ rules });
    const connections = new LoadConnections({ url: transport === "proxy" ? service.proxy! : service.http, count: 16 });
    const headersOf = (attributes: Wanted) =>
      Object.entries(attributes)
        .map(([name, value]) => `x-${name}: ${value}\r\n`)
        .join("");
    switch (transport) {
      case "library":
        return async (attributes) => (await limiter.check(attributes)).allowed;
      case "HTTP":
        return async (attributes) => {
          const { body } = await connections.send("POST", "/v1/check", { body: JSON.stringify({ attributes }) });
          return JSON.parse(body).allowed;
        };
      case "gRPC":
        return async (attributes) =>
          (await envoy.shouldRateLimit({ domain: "d", descriptors: [descriptor(attributes)] })).overallCode === 1;
      case "forward-auth":
        return async (attributes) => {
          const { status } = await connections.send("GET", "/v1/forward-auth", { headers: headersOf(attributes) });
          expect([200, 429]).toContain(status);
          return status === 200;
        };
      case "proxy":
        return async (attributes) => {
          const { status, body } = await connections.send("GET", "/x", { headers: headersOf(attributes) });
          expect(status === 200 ? body : status).toBe(status === 200 ? "upstream" : 429);
          return status === 200;
        };
    }
  }

  test.each(cases)("$name", async ({ requests, verdicts }) => {
    const got: boolean[] = [];
    for (const attributes of requests) got.push(await ask(attributes));
    expect(got).toEqual(verdicts);
  });

  test("10 000 requests for 777 admit 777", async () => {
    const startedMs = performance.now();
    let admitted = 0;
    let next = 0;
    await Promise.all(
      Array.from({ length: 64 }, async () => {
        while (next++ < 10_000) if (await ask({ load: "x" })) admitted++;
      }),
    );
    const seconds = (performance.now() - startedMs) / 1000;
    console.log(`${transport}: 10 000 requests in ${seconds.toFixed(2)} s (client included), ${admitted} admitted`);
    expect(admitted).toBe(777);
  }, 180_000);
});
