/** The gRPC port opens before the service has started: what comes meanwhile waits, for a bounded time. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { afterEach, expect, test } from "vitest";
import { createGrpcServer, type GrpcServer } from "../../packages/server/src/enforcement/envoy/grpc-server.js";
import { codes } from "../../packages/server/src/enforcement/envoy/rate-limit-messages.js";
import { TlsFiles } from "../../packages/server/src/http/tls-files.js";
import { WaitingListener } from "../../packages/server/src/http/waiting-listener.js";
import { createLog } from "../../packages/server/src/log.js";
import { observeRequests } from "../../packages/server/src/monitoring/observe-requests.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeCertificate } from "../harness/certificates.js";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function open(options: { mostWaiting?: number; waitAtMostMs?: number } = {}) {
  const listener = new WaitingListener(options);
  closers.push(() => listener.close());
  const { number } = await listener.listen({ host: "127.0.0.1", port: 0, portSetting: "grpc-port" });
  return { listener, port: number };
}

function grpcServer(tls?: TlsFiles): GrpcServer {
  const server = createGrpcServer({
    shouldRateLimit: async () => ({ overallCode: codes.ok, statuses: [], responseHeadersToAdd: [] }),
    observe: observeRequests({ requests: undefined, trace: undefined }),
    log: createLog("silent"),
    tls,
    carriesToken: undefined,
  });
  closers.push(() => server.drain({ timeoutMs: 100 }));
  return server;
}

/** Sends a call at once. Resolves with its status. */
function call(url: string): { sent: Promise<unknown>; status: Promise<string> } {
  const session = connectHttp2(url, { rejectUnauthorized: false });
  session.on("error", () => undefined);
  closers.push(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    "content-type": "application/grpc",
    te: "trailers",
  });
  const status = new Promise<string>((resolve) => {
    stream.on("trailers", (trailers) => resolve(String(trailers["grpc-status"])));
    stream.on("error", (error) => resolve(String((error as NodeJS.ErrnoException).code)));
  });
  stream.end(Buffer.alloc(5));
  stream.resume();
  return { sent: once(session, "connect"), status };
}

test("calls that were sent before the service started are answered once it has", async () => {
  const { listener, port } = await open();
  const calls = Array.from({ length: 20 }, () => call(`http://127.0.0.1:${port}`));
  await Promise.all(calls.map(({ sent }) => sent));
  // What they sent has reached the sockets.
  await new Promise((resolve) => setTimeout(resolve, 100));
  grpcServer().serve(listener);
  expect(await Promise.all(calls.map(({ status }) => status))).toEqual(calls.map(() => "0"));
});

test.skipIf(whyMissing("openssl"))("and so are those over TLS", async () => {
  const { listener, port } = await open();
  const statuses = Array.from({ length: 20 }, () => call(`https://127.0.0.1:${port}`).status);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const { certFile: cert, keyFile: key } = makeCertificate();
  const tls = new TlsFiles({ cert, key, clientCa: undefined }, createLog("silent"));
  closers.push(() => tls.close());
  grpcServer(tls).serve(listener);
  expect(await Promise.all(statuses)).toEqual(statuses.map(() => "0"));
});

test("a start that hangs holds nobody: those that wait are reset, those that come too, until it serves", async () => {
  const { listener, port } = await open({ waitAtMostMs: 50 });
  const outcome = async (): Promise<string> => {
    const socket = connect({ host: "127.0.0.1", port });
    const [error] = await once(socket, "error").catch((thrown: unknown) => [thrown]);
    return (error as NodeJS.ErrnoException).code ?? "";
  };
  expect(await outcome()).toBe("ECONNRESET");
  expect(await outcome()).toBe("ECONNRESET");
  grpcServer().serve(listener);
  expect(await call(`http://127.0.0.1:${port}`).status).toBe("0");
});

test("connections beyond the bound do not wait", async () => {
  const { port } = await open({ mostWaiting: 2 });
  const sockets = Array.from({ length: 3 }, () => connect({ host: "127.0.0.1", port }).on("error", () => undefined));
  closers.push(() => sockets.map((socket) => socket.destroy()));
  const closed = sockets.map(
    (socket) => new Promise((resolve) => socket.resume().once("close", () => resolve("closed"))),
  );
  expect(await Promise.race(closed)).toBe("closed");
});
