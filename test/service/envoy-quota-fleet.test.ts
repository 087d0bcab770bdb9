/** The quota service where it is run for real: counters on a Redis Cluster, gRPC under mTLS, several workers behind one port. */
import { readFileSync } from "node:fs";
import { credentials, status } from "@grpc/grpc-js";
import type { Rule } from "sluice";
import { afterEach, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeCertificate } from "../harness/certificates.js";
import { startCluster, until } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";
import { QuotaClient } from "./quota-client.js";
import { startApp, startQuotaEnvoy } from "./real-envoy.js";
import { postJson, startServiceProcess, startTestService } from "./running-service.js";

/** No window ends while a test runs. The even share of a term, which a first report gets, is 60. */
const perTenant: Rule = {
  id: "per-tenant",
  match: { domain: "shop" },
  key: ["tenant"],
  algorithm: "rolling-window",
  limit: 600,
  window: "10m",
  prefetch: "1m",
};
const SHARE = 60;
/** One counter for all tenants: on a Cluster it lies in another slot than most of theirs. */
const perDomain: Rule = { ...perTenant, id: "per-domain", key: ["domain"], limit: 100_000 };

const closers: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});
function connect(...args: ConstructorParameters<typeof QuotaClient>): QuotaClient {
  const client = new QuotaClient(...args);
  closers.push(() => client.close());
  return client;
}

async function remaining(http: string, tenant: string): Promise<Record<string, number>> {
  const { body } = await postJson(`${http}/v1/peek`, { attributes: { domain: "shop", tenant } });
  const checks = body.checks as { rule: string; remaining: number }[];
  return Object.fromEntries(checks.map((one) => [one.rule, one.remaining]));
}

async function metric(http: string, name: string): Promise<number> {
  const text = await (await fetch(`${http}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
}

describe.skipIf(whyMissing("redis"))("on a Redis Cluster", () => {
  test("units of tenants in every slot are held exactly, under two rules in different slots; what passed beyond them is charged", async () => {
    await using cluster = await startCluster();
    await using service = await startTestService({
      rules: [perTenant, perDomain],
      settings: { store: cluster.url, "store-deadline": "10s" },
    });
    const stream = connect(service.grpc).open();
    const tenants = Array.from({ length: 24 }, (_, i) => `t${i}`);
    for (const tenant of tenants) {
      stream.report([{ tenant }], { numRequestsDenied: 1 });
      expect(await stream.units()).toBe(SHARE);
      expect(await remaining(service.http, tenant)).toMatchObject({ "per-tenant": 600 - SHARE });
    }
    expect((await remaining(service.http, "t0"))["per-domain"]).toBe(100_000 - tenants.length * SHARE);
    // Keys of all three leaders are in use.
    const keys = await cluster.onLeaders("DBSIZE");
    expect(keys.map(Number).filter((count) => count > 0)).toHaveLength(3);
    // All that they were assigned was used, and one more by each, without a unit: charged, in either slot.
    stream.report(
      tenants.map((tenant) => ({ tenant })),
      { numRequestsAllowed: SHARE + 1 },
    );
    await stream.actions(tenants.length);
    await until("the domain's counter has what was used", async () => {
      const left = (await remaining(service.http, "t0"))["per-domain"]!;
      return left < 100_000 - tenants.length * (SHARE + 1);
    });
  });

  test.skipIf(whyMissing("envoy"))("every request that a real Envoy passes has a unit of both rules", async () => {
    const app = await startApp((_request, response) => response.end("ok"));
    await using cluster = await startCluster();
    await using service = await startTestService({
      rules: [perTenant, perDomain],
      settings: { store: cluster.url, "store-deadline": "10s" },
    });
    const envoy = await startQuotaEnvoy(app.at, service.grpc);
    let total = 0;
    for (const tenant of ["acme", "umbrella"]) {
      await until("it has units", async () => (await envoy.get(tenant)) === 200);
      let passed = 1;
      for (let i = 0; i < 100; i++) if ((await envoy.get(tenant)) === 200) passed++;
      expect(passed).toBeGreaterThanOrEqual(SHARE);
      // Whatever has passed was charged, or is held: it is not there any more.
      const left = await remaining(service.http, tenant);
      expect(passed).toBeLessThanOrEqual(600 - left["per-tenant"]!);
      total += passed;
      expect(total).toBeLessThanOrEqual(100_000 - left["per-domain"]!);
    }
    expect(app.seen().total).toBe(total);
    await envoy.stop();
    app.close();
  });
});

describe.skipIf(whyMissing("openssl"))("over mTLS", () => {
  const tlsSettings = ({ certFile, keyFile }: { certFile: string; keyFile: string }) => ({
    "grpc-tls-cert": certFile,
    "grpc-tls-key": keyFile,
    "grpc-tls-client-ca": certFile,
  });

  test.each(["own", "grpc-js"])(
    "a client with the certificate gets units, one without gets no stream: %s",
    async (transport) => {
      const certificate = makeCertificate();
      await using service = await startTestService({
        rules: [perTenant],
        settings: { ...tlsSettings(certificate), "grpc-transport": transport },
      });
      const { ca, certFile, keyFile } = certificate;
      const known = connect(
        service.grpc,
        credentials.createSsl(ca, readFileSync(keyFile), readFileSync(certFile)),
      ).open();
      known.report([{ tenant: "acme" }], { numRequestsDenied: 1 });
      expect(await known.units()).toBe(SHARE);
      const stranger = connect(service.grpc, credentials.createSsl(ca)).open();
      stranger.report([{ tenant: "acme" }], { numRequestsDenied: 1 });
      expect((await stranger.ended).code).not.toBe(0);
      expect(await metric(service.http, "sluice_envoy_quota_streams")).toBe(1);
    },
  );

  test.skipIf(whyMissing("envoy"))("a real Envoy with its certificate passes what it was assigned", async () => {
    const app = await startApp((_request, response) => response.end("ok"));
    const certificate = makeCertificate();
    await using service = await startTestService({ rules: [perTenant], settings: tlsSettings(certificate) });
    const { certFile, keyFile } = certificate;
    const tls = [
      "transport_socket:",
      "  name: envoy.transport_sockets.tls",
      "  typed_config:",
      '    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      "    common_tls_context:",
      `      tls_certificates: [{ certificate_chain: { filename: ${certFile} }, private_key: { filename: ${keyFile} } }]`,
      `      validation_context: { trusted_ca: { filename: ${certFile} } }`,
    ].map((line) => `      ${line}\n`);
    const envoy = await startQuotaEnvoy(app.at, service.grpc, (text) =>
      text.replace("    - name: sluice\n", `    - name: sluice\n${tls.join("")}`),
    );
    await until("it has units", async () => (await envoy.get("acme")) === 200);
    for (let i = 1; i < SHARE; i++) expect(await envoy.get("acme")).toBe(200);
    expect(app.seen().total).toBe(SHARE);
    expect((await remaining(service.http, "acme"))["per-tenant"]).toBeLessThanOrEqual(600 - SHARE);
    await envoy.stop();
    app.close();
  });
});

describe.skipIf(whyMissing("redis"))("with two workers", () => {
  test("streams of both share one counter, rules and metrics; a worker that dies takes no unit along", async () => {
    await using redis = await startRedis();
    const service = await startServiceProcess({
      rules: [perTenant],
      settings: { store: redis.url, "store-deadline": "10s", workers: "2" },
    });
    // A connection each: the first process hands them out in turn.
    const streams = [connect(service.grpc).open(), connect(service.grpc).open()];
    for (const stream of streams) {
      stream.report([{ tenant: "acme" }], { numRequestsDenied: 1 });
      expect(await stream.units()).toBe(SHARE);
    }
    expect(await remaining(service.http, "acme")).toEqual({ "per-tenant": 600 - 2 * SHARE });
    expect(await metric(service.http, "sluice_envoy_quota_streams")).toBe(2);
    expect(await metric(service.http, "sluice_envoy_quota_buckets")).toBe(2);
    const workers = workersOf(service.child.pid!);
    expect(workers).toHaveLength(2);
    process.kill(workers[0]!, "SIGKILL");
    const endings = streams.map(async (stream) => (await stream.ended).code);
    expect(await Promise.race(endings)).toBe(status.UNAVAILABLE);
    await until("another worker serves in its place", async () => {
      const now = workersOf(service.child.pid!);
      return now.length === 2 && !now.includes(workers[0]!);
    });
    // What its stream was assigned may still be used: it is held until its end.
    expect(await remaining(service.http, "acme")).toEqual({ "per-tenant": 600 - 2 * SHARE });
    expect(await service.end()).toBe(0);
  });

  test.skipIf(whyMissing("envoy"))("two real Envoys pass what they were assigned, from one counter", async () => {
    const app = await startApp((_request, response) => response.end("ok"));
    await using redis = await startRedis();
    const service = await startServiceProcess({
      rules: [perTenant],
      settings: { store: redis.url, "store-deadline": "10s", workers: "2" },
    });
    const envoys = [await startQuotaEnvoy(app.at, service.grpc), await startQuotaEnvoy(app.at, service.grpc)];
    for (const envoy of envoys) {
      await until("it has units", async () => (await envoy.get("acme")) === 200);
      for (let i = 1; i < SHARE; i++) expect(await envoy.get("acme")).toBe(200);
    }
    expect(app.seen().total).toBe(2 * SHARE);
    expect((await remaining(service.http, "acme"))["per-tenant"]).toBeLessThanOrEqual(600 - 2 * SHARE);
    expect(await metric(service.http, "sluice_envoy_quota_streams")).toBe(2);
    await Promise.all(envoys.map((envoy) => envoy.stop()));
    expect(await service.end()).toBe(0);
    app.close();
  });
});

function workersOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
}
