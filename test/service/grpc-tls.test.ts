/** The gRPC port over TLS: who gets an answer, by ALPN; and HTTP/2's conformance suite. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { makeCertificate } from "../harness/certificates.js";
import { frame, type Started, startTransport } from "./http2-peer.js";

const PREFACE = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0)]);
const SETTINGS = 4;

describe.skipIf(whyMissing("openssl"))("gRPC over TLS", () => {
  let service: Started;
  beforeAll(async () => {
    const { certFile, keyFile } = makeCertificate();
    service = await startTransport({ tls: { cert: readFileSync(certFile), key: readFileSync(keyFile) } });
  });
  afterAll(() => service.stop());

  const connect = (ALPNProtocols?: string[]): TLSSocket =>
    connectTls({
      port: service.port,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      ...(ALPNProtocols && { ALPNProtocols }),
    });

  test("a client that speaks h2 by ALPN is served", async () => {
    const client = connect(["http/1.1", "h2"]);
    await once(client, "secureConnect");
    client.write(PREFACE);
    const [bytes] = (await once(client, "data")) as [Buffer];
    expect([client.alpnProtocol, bytes[3]]).toEqual(["h2", SETTINGS]);
    client.destroy();
  });

  test.each([
    ["names no protocol", undefined],
    ["speaks another one", ["http/1.1"]],
  ])("a client that %s is closed, without a byte of an answer", async (_what, protocols) => {
    const client = connect(protocols);
    let bytes = 0;
    client.on("data", (chunk) => {
      bytes += chunk.length;
    });
    client.on("error", () => undefined);
    const closed = new Promise((resolve) => client.once("close", resolve));
    client.on("secureConnect", () => client.write(PREFACE));
    await closed;
    expect(bytes).toBe(0);
  });

  test.skipIf(whyMissing("h2spec"))("h2spec finds no failure, also where it is strict", async () => {
    const args = ["-h", "127.0.0.1", "-p", String(service.port), "-o", "10", "-t", "-k", "-S"];
    const { stdout } = await promisify(execFile)(components.h2spec.find()!, args).catch(
      (error: { stdout: string }) => error,
    );
    expect(stdout.trim().split("\n").at(-1), stdout).toMatch(/^(\d+) tests, \1 passed, 0 skipped, 0 failed$/);
  });
});
