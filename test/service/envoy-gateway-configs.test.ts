/**
 * Limits as others' own programs send them: the 26 configurations of Envoy Gateway's tests, and the bytes of the xDS server among
 * envoyproxy/ratelimit's examples. SLUICE_PEER_ENVOY_GATEWAY=FOLDER takes the configurations from a checkout instead.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { parseDomains } from "../../packages/server/src/enforcement/envoy/descriptor-config.js";
import { limitTree } from "../../packages/server/src/enforcement/envoy/limit-tree.js";
import { readResourceDomains } from "../../packages/server/src/enforcement/envoy/xds/read-resources.js";
import { xdsCodec } from "../../packages/server/src/enforcement/envoy/xds/xds-messages.js";
import { connectEnvoy, descriptor, type EnvoyClient } from "./envoy-client.js";
import { type Json, type RunningService, startTestService } from "./running-service.js";
import { startXdsServer, units, type XdsTestServer } from "./xds-server.js";

const OK = 1;
const OVER_LIMIT = 2;
const MOST_HITS = 0xffff_ffff;

const kept = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8");

/** By the name of the file. */
function gatewayFiles(): [string, string][] {
  const { SLUICE_PEER_ENVOY_GATEWAY: checkout } = process.env;
  if (checkout !== undefined) {
    const names = readdirSync(checkout).filter((file) => /^[^.]+\.yaml$/.test(file));
    return names.map((file) => [file, readFileSync(join(checkout, file), "utf8")]);
  }
  const parts = kept("envoy-gateway-configs.yaml").split(/^# ([\w-]+\.yaml)$/m);
  return parts.flatMap((part, i) => (i % 2 === 1 ? [[part, parts[i + 1]!]] : []));
}

let xds: XdsTestServer;
let service: RunningService;
let envoy: EnvoyClient;
beforeAll(async () => {
  xds = await startXdsServer();
  service = await startTestService({ settings: { "envoy-xds": xds.address, "envoy-xds-node-id": "test-node" } });
  envoy = connectEnvoy(service.grpc);
});
afterAll(async () => {
  envoy.close();
  await service.close();
  await xds[Symbol.asyncDispose]();
});

const acked = (version: string) => (request: Json) =>
  request.versionInfo === version && request.responseNonce !== "" && request.errorDetail === undefined;

describe("Envoy Gateway's own configurations", () => {
  const files = gatewayFiles();

  test("are 26", () => expect(files).toHaveLength(26));

  test.each(files)(
    "%s: as a file without a mistake; by xDS acknowledged, and each limit admits what it says",
    async (file, text) => {
      const outcome = parseDomains(text);
      expect("mistakes" in outcome && outcome.mistakes).toBe(false);
      const configs = parseAllDocuments(text).map((document) => document.toJS() as Json);
      // Counters of a domain live on from file to file.
      const domainOf = (domain: string): string => `${file}/${domain}`;
      xds.send(
        file,
        configs.map(({ name, domain, descriptors }) => ({
          name,
          domain: domainOf(domain),
          descriptors: descriptors.map(sentDescriptor),
        })),
      );
      await xds.received(acked(file));
      const leaves = configs.flatMap(({ domain, descriptors }) =>
        leavesOf(descriptors).map((leaf) => ({ ...leaf, domain: domainOf(domain) })),
      );
      expect(leaves.length).toBeGreaterThan(0);
      for (const { domain, entries, limit, isShadow } of leaves) {
        const asked = { domain, descriptors: [{ entries }] };
        const unit = units[String(limit.unit).toLowerCase() as keyof typeof units];
        const [first] = (await envoy.shouldRateLimit(asked)).statuses;
        expect(first).toMatchObject({ code: OK, currentLimit: { requestsPerUnit: limit.requests_per_unit, unit } });
        // No request has more hits than that.
        if (limit.requests_per_unit >= MOST_HITS) continue;
        const hits = await envoy.shouldRateLimit({ ...asked, hitsAddend: limit.requests_per_unit + 1 });
        expect(hits.statuses[0]!.code).toBe(isShadow ? OK : OVER_LIMIT);
      }
    },
  );
});

test("what envoyproxy/ratelimit's example of an xDS server sent (go-control-plane, f2fb157) is acknowledged and in force", async () => {
  await xds.received((request) => request.node?.id === "test-node");
  xds.sendBytes(Buffer.from(kept("xds-example-response.txt"), "base64"));
  await xds.received(acked("1"));
  const ask = (...entries: Record<string, string>[]) =>
    envoy.shouldRateLimit({ domain: "rl", descriptors: entries.map((one) => descriptor(one)) });
  const limitOf = async (...entries: Record<string, string>[]) =>
    (await ask(...entries)).statuses.map(({ code, currentLimit }: Json) => [code, currentLimit?.requestsPerUnit]);
  expect(await limitOf({ foo: "x" })).toEqual([[OK, 2]]);
  expect(await limitOf({ foo: "x", bar: "y" })).toEqual([[OK, 3]]);
  const banned = { foo: "x", bar: "banned" };
  expect(await limitOf(banned)).toEqual([[OVER_LIMIT, 0]]);
  // "override" replaces "banned_limit".
  const override = { source_cluster: "proxy", destination_cluster: "override" };
  expect(await limitOf(banned, override)).toEqual([
    [OK, undefined],
    [OK, 2],
  ]);
  expect(await limitOf({ qux: "x" })).toEqual([[OK, undefined]]);
  for (let i = 0; i < 5; i++) expect((await ask({ foo: "x", baz: "shady" })).overallCode).toBe(OK);
});

test("120 damaged copies of it are read or refused, each with a mistake; what is read can be put in force", () => {
  const seed = 20_261_117;
  let state = seed;
  const below = (n: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return Math.floor((state / 2 ** 31) * n);
  };
  const whole = Buffer.from(kept("xds-example-response.txt"), "base64");
  const { readResponse } = xdsCodec();
  const outcomes = { unreadable: 0, mistakes: 0, read: 0 };
  for (let i = 0; i < 120; i++) {
    const bytes = Buffer.from(whole.subarray(0, below(8) === 0 ? below(whole.length) : whole.length));
    for (let k = 0; k <= below(3); k++) if (bytes.length > 0) bytes[below(bytes.length)] = below(256);
    const response = readResponse(bytes);
    if (response === undefined) {
      outcomes.unreadable++;
      continue;
    }
    let domains: ReturnType<typeof readResourceDomains>;
    try {
      domains = readResourceDomains(response.resources, { merge: below(2) === 0, allQuotas: false });
    } catch (error) {
      expect((error as Error).message, `seed ${seed}, copy ${i}`).not.toBe("");
      outcomes.mistakes++;
      continue;
    }
    expect(() => limitTree(domains), `seed ${seed}, copy ${i}`).not.toThrow();
    outcomes.read++;
  }
  // Each way was gone.
  expect(Math.min(...Object.values(outcomes)), JSON.stringify(outcomes)).toBeGreaterThan(5);
});

/** From the spelling of files to that of messages. */
function sentDescriptor({ key, value, rate_limit: limit, descriptors, shadow_mode: shadowMode }: Json): Json {
  const unit = units[String(limit?.unit).toLowerCase() as keyof typeof units];
  return {
    key,
    value: value ?? "",
    ...(limit && { rateLimit: { unit, requestsPerUnit: limit.requests_per_unit, unlimited: limit.unlimited } }),
    descriptors: (descriptors ?? []).map(sentDescriptor),
    shadowMode,
  };
}

interface Leaf {
  readonly entries: { key: string; value: string }[];
  readonly limit: Json;
  readonly isShadow: boolean;
}

/** Every limit, with a request that meets it; a level without a value takes any. */
function leavesOf(descriptors: readonly Json[], above: Leaf["entries"] = []): Leaf[] {
  return descriptors.flatMap(({ key, value, rate_limit: limit, descriptors: below, shadow_mode: isShadow }, i) => {
    const entries = [...above, { key, value: value || `any-${i}` }];
    const own = limit == null ? [] : [{ entries, limit, isShadow: isShadow === true }];
    return [...own, ...leavesOf(below ?? [], entries)];
  });
}
