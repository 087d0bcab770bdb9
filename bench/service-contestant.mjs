/**
 * One server of the service's benchmark, as a process of its own: started by service.mjs with its kind, tells its port, and its processor time when asked.
 *   sluice        the service, memory store, two rules; `sluice redis` on a Redis (then its URL); `... on and off` twice in one process
 *   node:http     reads the body, answers a constant of the same size
 *   fastify       the same on a bare Fastify
 *   grpc-js       answers a constant RateLimitResponse of the same size
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import Fastify from "fastify";

const [kind, constantHex] = process.argv.slice(2);
const constant = Buffer.from(constantHex ?? "", "hex");

/** Two rules, as a small service would have: one by user, one for all. */
export const rules = [
  { id: "per-user", key: ["user"], algorithm: "token-bucket", limit: 1_000_000, window: "1s" },
  { id: "all-together", key: [], algorithm: "gcra", limit: 1_000_000_000, window: "1s" },
];

/** @param {Record<string, string>} more @returns {Promise<Record<string, number>>} */
async function sluice(more = {}) {
  const server = new URL("../packages/server/dist/", import.meta.url);
  const { startService } = await import(new URL("service/service.js", server).href);
  const { resolveSettings } = await import(new URL("settings/settings.js", server).href);
  const { createLog } = await import(new URL("log.js", server).href);
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "rules.json");
  writeFileSync(file, JSON.stringify({ rules }));
  const flags = { port: "0", "grpc-port": "0", rules: file, "data-folder": folder, "log-level": "error", ...more };
  const service = await startService({ settings: resolveSettings({ flags, env: {} }), log: createLog("error") });
  return { http: Number(new URL(service.http).port), grpc: Number(service.grpc.split(":").at(-1)) };
}

/** Two services in one process, with all of monitoring and with none: so that chance in how a process was laid out falls on both. */
async function onAndOff(more) {
  const [on, off] = [await sluice(more), await sluice({ ...more, monitoring: "off" })];
  return { on: on.http, off: off.http };
}

async function bareHttp() {
  const headers = { "content-type": "application/json; charset=utf-8", "content-length": constant.length };
  const text = constant.toString();
  const server = createServer((request, response) => {
    request.on("data", () => {});
    request.on("end", () => response.writeHead(200, headers).end(text));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  return { http: /** @type {import("node:net").AddressInfo} */ (server.address()).port };
}

async function bareFastify() {
  const app = Fastify();
  const text = constant.toString();
  app.post("/v1/check", (_request, reply) => reply.type("application/json; charset=utf-8").send(text));
  await app.listen({ port: 0, host: "127.0.0.1" });
  return { http: /** @type {import("node:net").AddressInfo} */ (app.server.address()).port };
}

async function bareGrpc() {
  const server = new Server();
  const same = (/** @type {Buffer} */ bytes) => bytes;
  const path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
  const method = { path, requestStream: false, responseStream: false };
  server.addService(
    {
      ShouldRateLimit: {
        ...method,
        requestSerialize: same,
        requestDeserialize: same,
        responseSerialize: same,
        responseDeserialize: same,
      },
    },
    { ShouldRateLimit: (_call, done) => done(null, constant) },
  );
  const grpc = await new Promise((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    ),
  );
  return { grpc };
}

const onRedis = { store: constant.toString(), "store-deadline": "2s" };
const contestants = {
  sluice,
  "sluice redis": () => sluice(onRedis),
  "sluice on and off": () => onAndOff({}),
  "sluice redis on and off": () => onAndOff(onRedis),
  "node:http": bareHttp,
  fastify: bareFastify,
  "grpc-js": bareGrpc,
};

if (process.send !== undefined) {
  const ports = await contestants[kind]();
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send({ cpuUs: user + system });
  });
  process.on("disconnect", () => process.exit());
  process.send({ ports });
}
