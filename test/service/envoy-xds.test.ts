/** Limits by xDS, as Envoy Gateway sends them: over mTLS, with mistakes, from control planes that come and go; and TLS of the ports beside it. */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { credentials, ServerCredentials, status } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { createLog } from "../../packages/server/src/log.js";
import { startService } from "../../packages/server/src/service/service.js";
import { resolveSettings } from "../../packages/server/src/settings/settings.js";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { makeTempFolder } from "../harness/leash.js";
import { until } from "../harness/redis-cluster.js";
import { connectEnvoy, descriptor, type EnvoyClient } from "./envoy-client.js";
import { type Json, startTestService } from "./running-service.js";
import { CONFIG_TYPE, type SentConfig, startXdsServer, units, type XdsTestServer } from "./xds-server.js";

const OK = 1;
const OVER_LIMIT = 2;

const perDay = (limit: number, more: Json = {}): SentConfig => ({
  domain: "gateway/listener",
  descriptors: [{ key: "user", rateLimit: { unit: units.day, requestsPerUnit: limit }, ...more }],
});

const startWith = (xds: XdsTestServer, settings: Record<string, string> = {}) =>
  startTestService({ settings: { "envoy-xds": xds.address, "envoy-xds-node-id": "test-node", ...settings } });

let users = 0;
async function admittedOf(envoy: EnvoyClient, count: number, domain = "gateway/listener"): Promise<number> {
  const user = `user-${users++}`;
  let admitted = 0;
  for (let i = 0; i < count; i++) {
    const { overallCode } = await envoy.shouldRateLimit({ domain, descriptors: [descriptor({ user })] });
    if (overallCode === OK) admitted++;
  }
  return admitted;
}

/** The ACK of a version: no mistake, and the version in force. */
const acked = (version: string) => (request: Json) =>
  request.versionInfo === version && request.responseNonce !== "" && request.errorDetail === undefined;
const nacked = (request: Json) => request.errorDetail !== undefined;

describe("limits of a control plane", () => {
  test("come in force and are acknowledged; until then nothing is decided", async () => {
    await using xds = await startXdsServer();
    await using service = await startWith(xds, { "envoy-xds-node-metadata": "zone=a,pod=b" });
    const envoy = connectEnvoy(service.grpc);
    await expect(admittedOf(envoy, 1)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    expect((await fetch(`${service.http}/healthcheck`)).status).toBe(200);
    await xds.received((request) => request.node?.id === "test-node");
    xds.send("1", [perDay(2), { ...perDay(1), domain: "other" }]);
    await xds.received(acked("1"));
    expect(await admittedOf(envoy, 4)).toBe(2);
    expect(await admittedOf(envoy, 4, "other")).toBe(1);
    expect(await admittedOf(envoy, 4, "unknown")).toBe(4);
    expect(xds.requests[0]).toMatchObject({
      node: { id: "test-node", metadata: { fields: { zone: { text: "a" }, pod: { text: "b" } } } },
      typeUrl: CONFIG_TYPE,
    });
    expect(xds.requests[0].versionInfo).toBe("");
    xds.send("2", [perDay(3)]);
    await xds.received(acked("2"));
    expect(await admittedOf(envoy, 4)).toBe(3);
    expect(await admittedOf(envoy, 4, "other")).toBe(4);
    envoy.close();
  });

  test("with mistakes are refused with them, and those in force stay", async () => {
    await using xds = await startXdsServer();
    xds.send("good", [perDay(2)]);
    await using service = await startWith(xds);
    const envoy = connectEnvoy(service.grpc);
    await xds.received(acked("good"));
    xds.send("bad", [perDay(1, { rateLimit: { unit: 0, requestsPerUnit: 1 } }), { ...perDay(1), name: "twin" }]);
    const nack = await xds.received(nacked);
    expect(nack.versionInfo).toBe("good");
    expect(nack.errorDetail.message).toContain('"gateway/listener": descriptors[0].rate_limit.unit: expected one of');
    expect(await admittedOf(envoy, 4)).toBe(2);
    const metrics = await (await fetch(`${service.http}/metrics`)).text();
    expect(metrics).toContain('sluice_envoy_config_reloads_total{outcome="failed"} 1');
    expect(metrics).toContain("sluice_envoy_xds_connected 1");
    xds.send("better", [perDay(3)]);
    await xds.received(acked("better"));
    expect(await admittedOf(envoy, 4)).toBe(3);
    envoy.close();
  });

  test("are as Envoy Gateway writes them: nested values, units, shadow, several resources, shared rules", async () => {
    const rule = (key: string, leaf: Json): Json => ({ key, value: key, descriptors: [leaf] });
    const leaf = (unit: number, requestsPerUnit: number, more: Json = {}): Json => ({
      key: "rule-0-match-0",
      value: "rule-0-match-0",
      rateLimit: { unit, requestsPerUnit, unlimited: false, name: "", replaces: [] },
      descriptors: [],
      ...more,
    });
    await using xds = await startXdsServer();
    xds.send("1", [
      {
        domain: "first-listener",
        descriptors: [rule("route-a", leaf(units.month, 1)), rule("route-b", leaf(units.year, 2))],
      },
      { domain: "second-listener", descriptors: [rule("route-a", leaf(units.week, 3, { shadowMode: true }))] },
      {
        domain: "policy/shared",
        descriptors: [
          rule("shared", {
            key: "masked_remote_address",
            value: "192.168.0.0/16",
            descriptors: [{ key: "remote_address", rateLimit: { unit: units.hour, requestsPerUnit: 1 } }],
          }),
        ],
      },
    ]);
    await using service = await startWith(xds);
    await xds.received(acked("1"));
    const envoy = connectEnvoy(service.grpc);
    const ask = async (domain: string, entries: Record<string, string>) =>
      (await envoy.shouldRateLimit({ domain, descriptors: [descriptor(entries)] })).statuses[0];
    const onRoute = (route: string) => ({ [route]: route, "rule-0-match-0": "rule-0-match-0" });
    expect(await ask("first-listener", onRoute("route-a"))).toMatchObject({ currentLimit: { unit: units.month } });
    expect((await ask("first-listener", onRoute("route-a"))).code).toBe(OVER_LIMIT);
    expect(await ask("first-listener", onRoute("route-b"))).toMatchObject({ code: OK, limitRemaining: 1 });
    for (let i = 0; i < 5; i++) expect((await ask("second-listener", onRoute("route-a"))).code).toBe(OK);
    const from = (address: string) => ({
      shared: "shared",
      masked_remote_address: "192.168.0.0/16",
      remote_address: address,
    });
    expect((await ask("policy/shared", from("192.168.0.1"))).code).toBe(OK);
    expect((await ask("policy/shared", from("192.168.0.1"))).code).toBe(OVER_LIMIT);
    expect((await ask("policy/shared", from("192.168.0.2"))).code).toBe(OK);
    envoy.close();
  });

  test("stay while the control plane is away, and new ones come when it is back", async () => {
    await using xds = await startXdsServer();
    xds.send("1", [perDay(2)]);
    await using service = await startWith(xds);
    await xds.received(acked("1"));
    const envoy = connectEnvoy(service.grpc);
    await xds.stop();
    expect(await admittedOf(envoy, 4)).toBe(2);
    await xds.restart();
    xds.send("2", [perDay(3)]);
    const again = await xds.received((request) => request.responseNonce === "" && request.versionInfo === "1");
    expect(again.node.id).toBe("test-node");
    await xds.received(acked("2"));
    expect(await admittedOf(envoy, 4)).toBe(3);
    envoy.close();
  });

  test("outlive a restart without a control plane, but not as those of another node", async () => {
    const xds = await startXdsServer();
    xds.send("1", [perDay(2)]);
    const folder = makeTempFolder("data");
    const first = await startWith(xds, { "data-folder": folder });
    await xds.received(acked("1"));
    await first.close();
    await xds.stop();
    {
      await using second = await startWith(xds, { "data-folder": folder });
      const envoy = connectEnvoy(second.grpc);
      expect(await admittedOf(envoy, 4)).toBe(2);
      envoy.close();
    }
    await using other = await startWith(xds, { "data-folder": folder, "envoy-xds-node-id": "other" });
    const envoy = connectEnvoy(other.grpc);
    await expect(admittedOf(envoy, 1)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    envoy.close();
  });
});

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 127) | 128);
  }
}

test.each([
  ["cut off", (text: string) => text.slice(0, -20)],
  ["changed", (text: string) => text.replace("resources", "resourceX")],
  ["empty", () => ""],
])("kept limits that were %s are not used, and the service starts without them", async (_what, damage) => {
  const folder = makeTempFolder("kept");
  await using xds = await startXdsServer();
  xds.send("1", [perDay(2)]);
  const first = await startWith(xds, { "data-folder": folder });
  await xds.received(acked("1"));
  const file = join(folder, "envoy-limits-snapshot");
  await until("they are kept", async () => existsSync(file));
  await first.close();
  await xds.stop();
  writeFileSync(file, damage(readFileSync(file, "utf8")));
  await using second = await startWith(xds, { "data-folder": folder });
  const envoy = connectEnvoy(second.grpc);
  await expect(admittedOf(envoy, 1)).rejects.toMatchObject({ code: status.UNAVAILABLE });
  envoy.close();
});

describe("a hostile control plane", () => {
  const bomb = (depth: number): Json => (depth === 0 ? { key: "k" } : { key: "k", descriptors: [bomb(depth - 1)] });

  test.each<[string, (xds: XdsTestServer) => void, RegExp]>([
    [
      "bytes that are no resource",
      (xds) => xds.sendRaw("x", [{ typeUrl: CONFIG_TYPE, value: Buffer.from([0xff, 0xff, 0xff]) }]),
      /./,
    ],
    [
      "a resource of another type",
      (xds) => xds.sendRaw("x", [{ typeUrl: "type.googleapis.com/other", value: Buffer.alloc(0) }]),
      /expected resources of type/,
    ],
    [
      "a response of another type",
      (xds) => xds.sendRaw("x", [], "type.googleapis.com/other"),
      /expected a response of type/,
    ],
    [
      "descriptors without end",
      (xds) => xds.send("x", [{ domain: "d", descriptors: [bomb(90)] }]),
      /at most 32 levels/,
    ],
    [
      "descriptors of five thousand levels, deeper than a stack",
      (xds) => {
        // Field 3 of a configuration, then field 4 of each descriptor, from the innermost.
        let nested = Buffer.from([0x0a, 1, 0x6b]);
        for (let i = 0; i < 5_000; i++) nested = Buffer.concat([Buffer.from([0x22]), varint(nested.length), nested]);
        const config = [Buffer.from([0x12, 1, 0x64, 0x1a]), varint(nested.length), nested];
        xds.sendRaw("x", [{ typeUrl: CONFIG_TYPE, value: Buffer.concat(config) }]);
      },
      /./,
    ],
    ["a domain twice", (xds) => xds.send("x", [perDay(1), { ...perDay(1), name: "twin" }]), /duplicate domain/],
    [
      "the same descriptor ten thousand times",
      (xds) => xds.send("x", [{ domain: "d", descriptors: Array(10_000).fill({ key: "k" }) }]),
      /duplicate descriptor/,
    ],
  ])("%s is refused, in few words; what was in force stays", async (_what, attack, mistake) => {
    await using xds = await startXdsServer();
    xds.send("good", [perDay(2)]);
    await using service = await startWith(xds);
    await xds.received(acked("good"));
    attack(xds);
    const nack = await xds.received(nacked);
    expect(nack.errorDetail.message).toMatch(mistake);
    expect(nack.errorDetail.message.length).toBeLessThanOrEqual(4_096);
    // A NACK names the version that stays in force.
    expect(nack.versionInfo).toBe("good");
    const envoy = connectEnvoy(service.grpc);
    expect(await admittedOf(envoy, 4)).toBe(2);
    envoy.close();
  });

  test("that sends bytes which are no response is left and asked anew; what was in force stays meanwhile", async () => {
    await using xds = await startXdsServer();
    xds.send("good", [perDay(2)]);
    await using service = await startWith(xds, { "envoy-xds-headers": "authorization=Bearer of-the-plane" });
    await xds.received(acked("good"));
    const before = xds.requests.length;
    xds.sendBytes(Buffer.from([0xff, 0xff]));
    const envoy = connectEnvoy(service.grpc);
    expect(await admittedOf(envoy, 4)).toBe(2);
    await until("another stream was opened", async () => xds.opened.length === 2);
    await until("its limits are acknowledged", async () => xds.requests.slice(before).some(acked("good")));
    // Each stream brings the headers that were asked for, and the version in force with its first request.
    expect(xds.opened.map(({ authorization }) => authorization)).toEqual(Array(2).fill("Bearer of-the-plane"));
    expect(xds.requests[before]).toMatchObject({ versionInfo: "good", node: { id: "test-node" } });
    envoy.close();
  });

  test("that changes its mind five hundred times at once is followed to the last", async () => {
    await using xds = await startXdsServer();
    xds.send("0", [perDay(1)]);
    await using service = await startWith(xds);
    await xds.received(acked("0"));
    for (let i = 1; i <= 500; i++) xds.send(String(i), [perDay(1 + (i % 3))]);
    await xds.received(acked("500"));
    const envoy = connectEnvoy(service.grpc);
    expect(await admittedOf(envoy, 6)).toBe(1 + (500 % 3));
    envoy.close();
  });
});

/** An authority, and certificates of it for 127.0.0.1, in a folder. */
function makeAuthority(): { folder: string; ca: Buffer; issue(name: string): { cert: string; key: string } } {
  const folder = makeTempFolder("authority");
  const openssl = (...args: string[]) => execFileSync(components.openssl.find()!, args, { cwd: folder, stdio: "pipe" });
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl("req", "-x509", ...ec, "-days", "2", "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=authority");
  return {
    folder,
    ca: readFileSync(join(folder, "ca.crt")),
    issue(name) {
      writeFileSync(join(folder, `${name}.ext`), `subjectAltName=IP:127.0.0.1,DNS:${name}`);
      openssl("req", ...ec, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", `/CN=${name}`);
      const signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", `${name}.ext`];
      openssl("x509", "-req", "-in", `${name}.csr`, ...signed, "-out", `${name}.crt`);
      return { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
    },
  };
}

describe.skipIf(whyMissing("openssl"))("TLS", () => {
  test("an environment as Envoy Gateway writes it: xDS over mTLS, TLS for gRPC, plain HTTP for probes", async () => {
    const authority = makeAuthority();
    const gateway = authority.issue("envoy-gateway");
    const ours = authority.issue("envoy-ratelimit");
    const pair = { private_key: readFileSync(gateway.key), cert_chain: readFileSync(gateway.cert) };
    await using xds = await startXdsServer({
      node: "envoy-ratelimit",
      credentials: ServerCredentials.createSsl(authority.ca, [pair], true),
    });
    xds.send("1", [perDay(2)]);
    const env = {
      RUNTIME_ROOT: "/data",
      RUNTIME_SUBDIRECTORY: "ratelimit",
      LOG_LEVEL: "error",
      CONFIG_TYPE: "GRPC_XDS_SOTW",
      CONFIG_GRPC_XDS_SERVER_URL: xds.address,
      CONFIG_GRPC_XDS_NODE_ID: "envoy-ratelimit",
      GRPC_SERVER_USE_TLS: "true",
      GRPC_SERVER_TLS_CERT: ours.cert,
      GRPC_SERVER_TLS_KEY: ours.key,
      GRPC_SERVER_TLS_CA_CERT: join(authority.folder, "ca.crt"),
      CONFIG_GRPC_XDS_SERVER_USE_TLS: "true",
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT: ours.cert,
      CONFIG_GRPC_XDS_CLIENT_TLS_KEY: ours.key,
      CONFIG_GRPC_XDS_SERVER_TLS_CACERT: join(authority.folder, "ca.crt"),
      CONFIG_GRPC_XDS_SERVER_TLS_SAN: "envoy-gateway",
      FORCE_START_WITHOUT_INITIAL_CONFIG: "true",
      USE_PROMETHEUS: "true",
      // Envoy Gateway leaves it at :9090, which may be taken where the tests run.
      PROMETHEUS_ADDR: `127.0.0.1:${await freePort()}`,
    };
    const flags = { host: "127.0.0.1", port: "0", "grpc-port": "0", "data-folder": makeTempFolder("data") };
    const settings = resolveSettings({ flags, env });
    expect(settings["log-level"]).toBe("error");
    expect(resolveSettings({ flags: { "data-folder": flags["data-folder"] }, env }).host).toBe("0.0.0.0");
    const service = await startService({ settings, log: createLog("silent") });
    await xds.received(acked("1"));
    const envoy = connectEnvoy(service.grpc, credentials.createSsl(authority.ca));
    expect(await admittedOf(envoy, 4)).toBe(2);
    expect(service.http).toMatch(/^http:/);
    expect(await (await fetch(`${service.http}/healthcheck`)).text()).toBe("OK");
    envoy.close();
    await service.close();
  });

  test("a control plane that is not who it says is not listened to", async () => {
    const [real, false_] = [makeAuthority(), makeAuthority()];
    const gateway = false_.issue("envoy-gateway");
    const pair = { private_key: readFileSync(gateway.key), cert_chain: readFileSync(gateway.cert) };
    await using xds = await startXdsServer({ credentials: ServerCredentials.createSsl(null, [pair]) });
    xds.send("1", [perDay(2)]);
    await using service = await startWith(xds, { "envoy-xds-ca": join(real.folder, "ca.crt") });
    const envoy = connectEnvoy(service.grpc);
    await expect(admittedOf(envoy, 1)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    expect(xds.requests).toEqual([]);
    envoy.close();
  });

  test("clients of gRPC without a certificate of the authority, or with another name, are refused", async () => {
    const authority = makeAuthority();
    const [server, good, stranger] = ["server", "envoy", "stranger"].map((name) => authority.issue(name)) as [
      Pair,
      Pair,
      Pair,
    ];
    await using service = await startTestService({
      rules: [{ id: "by-user", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1d" }],
      settings: {
        "grpc-tls-cert": server.cert,
        "grpc-tls-key": server.key,
        "grpc-tls-client-ca": join(authority.folder, "ca.crt"),
        "grpc-tls-client-san": "envoy",
      },
    });
    const secure = (pair?: Pair) =>
      connectEnvoy(
        service.grpc,
        credentials.createSsl(authority.ca, pair && readFileSync(pair.key), pair && readFileSync(pair.cert)),
      );
    const [known, unknown, none] = [secure(good), secure(stranger), secure()];
    expect(await admittedOf(known, 4)).toBe(2);
    await expect(admittedOf(unknown, 1)).rejects.toMatchObject({ code: status.PERMISSION_DENIED });
    await expect(admittedOf(none, 1)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    for (const client of [known, unknown, none]) client.close();
    expect((await fetch(`${service.http}/healthz`)).status).toBe(200);
  });

  test("renewed certificates are served without a restart; broken ones are not", async () => {
    const authority = makeAuthority();
    const [old, renewed] = [authority.issue("old"), authority.issue("renewed")];
    const inUse = { cert: join(authority.folder, "tls.crt"), key: join(authority.folder, "tls.key") };
    const use = ({ cert, key }: Pair) => {
      copyFileSync(cert, inUse.cert);
      copyFileSync(key, inUse.key);
    };
    use(old);
    await using service = await startTestService({ settings: { "tls-cert": inUse.cert, "tls-key": inUse.key } });
    const ports = [new URL(service.http).port, service.grpc.split(":")[1]!].map(Number);
    const names = () => Promise.all(ports.map((port) => servedName(port, authority.ca)));
    expect(await names()).toEqual(["old", "old"]);
    use(renewed);
    while ((await names()).some((name) => name !== "renewed")) await new Promise((resolve) => setTimeout(resolve, 100));
    writeFileSync(inUse.cert, "half of a certif");
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(await names()).toEqual(["renewed", "renewed"]);
  });
});

type Pair = { cert: string; key: string };

function servedName(port: number, ca: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", ca, ALPNProtocols: ["h2", "http/1.1"] }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}
