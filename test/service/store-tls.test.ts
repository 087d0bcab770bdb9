/** The service's own clients of a Redis that speaks TLS alone, with a private authority, and requires a client certificate. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeCertificate, tlsArgs } from "../harness/certificates.js";
import { makeTempFolder } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { type Json, postJson, startTestService } from "./running-service.js";

describe.skipIf(whyMissing("redis", "openssl"))("a Redis that asks for a certificate", () => {
  const rule = { id: "by-user", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1d" } as const;
  const check = { attributes: { user: "ann" } };

  test("is used by counters, rule cache, fleet and store view with --store-ca, --store-cert and --store-key", async () => {
    const certificate = makeCertificate();
    const { certFile, keyFile } = certificate;
    const { server, cli } = tlsArgs(certificate);
    await using redis = await startRedis({
      args: [...server, "--tls-auth-clients", "yes"],
      cliArgs: [...cli, "--cert", certFile, "--key", keyFile],
    });
    const store = { store: `rediss://127.0.0.1:${redis.port}`, "store-deadline": "10s" };
    const files = { "store-ca": certFile, "store-cert": certFile, "store-key": keyFile };
    const allowed: boolean[] = [];
    // Two instances count together.
    await using first = await startTestService({ rules: [rule], settings: { ...store, ...files } });
    await using second = await startTestService({ rules: [rule], settings: { ...store, ...files } });
    for (const { http } of [first, second, first, second]) {
      const { body } = await postJson(`${http}/v1/check`, check);
      expect(body.degraded).toBeUndefined();
      allowed.push(body.allowed);
    }
    expect(allowed).toEqual([true, true, false, false]);
    const admin = { authorization: `Bearer ${readFileSync(first.adminTokenFile!, "utf8").trim()}` };
    const view = async () =>
      ((await (await fetch(`${first.http}/admin/v1/store`, { headers: admin })).json()) as Json).nodes;
    await expect.poll(view, { timeout: 30_000 }).toMatchObject([{ role: "leader" }]);
    const clients = await redis.cli("CLIENT", "LIST");
    expect(clients.split("\n").filter((line) => line.includes("addr=")).length).toBeGreaterThan(4);
  });

  test("a file that is no certificate ends the start, and is named", async () => {
    const file = join(makeTempFolder("store-tls"), "ca.pem");
    writeFileSync(file, "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n");
    const settings = { store: "rediss://127.0.0.1:1", "store-ca": file };
    await expect(startTestService({ rules: [rule], settings })).rejects.toThrow(/^store-ca: expected PEM, got /);
    await expect(startTestService({ rules: [rule], settings: { ...settings, "store-cert": file } })).rejects.toThrow(
      "store-cert, store-key: expected both or neither, got one",
    );
  });
});
