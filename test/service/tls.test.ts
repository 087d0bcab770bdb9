/** The service under TLS: HTTP, gRPC and the proxy with one certificate. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { connectEnvoy, descriptor } from "./envoy-client.js";
import { startTestService } from "./running-service.js";

describe.skipIf(whyMissing("openssl"))("with a certificate", () => {
  test("HTTP, gRPC and the proxy answer over TLS, and tokens are asked for over each", async () => {
    const folder = makeTempFolder("tls");
    const key = join(folder, "key.pem");
    const cert = join(folder, "cert.pem");
    const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
    const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    execFileSync(components.openssl.find()!, [...args, "-keyout", key, "-out", cert, ...subject], { stdio: "pipe" });
    const ca = readFileSync(cert);
    const upstream = createServer((incoming, response) => response.end(incoming.headers["x-forwarded-proto"]));
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    await using service = await startTestService({
      rules: [{ id: "by-user", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1d" }],
      settings: {
        "tls-cert": cert,
        "tls-key": key,
        "api-token": "a-token-of-the-data-plane",
        upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
      },
    });
    const authorization = "Bearer a-token-of-the-data-plane";
    const get = (url: string, headers = {}): Promise<string> =>
      new Promise((resolve, reject) => {
        const sent = request(url, { ca, headers }, (answer) => {
          let text = `${answer.statusCode} `;
          answer.on("data", (chunk) => {
            text += chunk;
          });
          answer.on("end", () => resolve(text));
        });
        sent.on("error", reject).end();
      });

    expect(service.http).toMatch(/^https:/);
    expect(await get(`${service.http}/healthz`)).toBe('200 {"live":true}');
    expect(await get(`${service.http}/v1/forward-auth`)).toMatch(/^401 /);
    expect(await get(`${service.http}/v1/forward-auth`, { authorization })).toMatch(/^200 /);
    expect(await get(`${service.proxy}/x`)).toBe("200 https");

    const secure = connectEnvoy(service.grpc, credentials.createSsl(ca));
    const ask = () => secure.shouldRateLimit({ domain: "d", descriptors: [descriptor({ user: "x" })] });
    await expect(ask()).rejects.toThrow(/UNAUTHENTICATED/);
    secure.close();
    const bearer = credentials.createFromMetadataGenerator((_options, done) => {
      import("@grpc/grpc-js").then(({ Metadata }) => {
        const metadata = new Metadata();
        metadata.set("authorization", authorization);
        done(null, metadata);
      });
    });
    const known = connectEnvoy(service.grpc, credentials.combineChannelCredentials(credentials.createSsl(ca), bearer));
    expect((await known.shouldRateLimit({ domain: "d", descriptors: [descriptor({ user: "x" })] })).overallCode).toBe(
      1,
    );
    known.close();
    upstream.close();
  });
});
