/**
 * What the service costs beside a bare server that answers a constant of the same size, in the same run: HTTP and gRPC, memory store.
 *
 *   npm run build && node bench/service.mjs [--quick] [--json FILE]
 *
 * Servers are processes of their own and take turns; medians of the rounds count. Beside throughput stands each server's own processor
 * time for a request, which a busy machine disturbs less.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createLimiter } from "sluice";
import { loadFrames } from "./grpc-load.mjs";
import { interleaved } from "./measure.mjs";
import { printBars, printSection } from "./report.mjs";
import { rules } from "./service-contestant.mjs";
import { loadHttp } from "./service-load.mjs";

const GRPC_PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const USERS = 1_000;
const LEAST_SHARE = 0.6;

const bodyOf = (/** @type {number} */ i) => JSON.stringify({ attributes: { user: `user-${i}`, path: "/v1/orders" } });

/** @param {number} users */
export function httpMessagesFor(users) {
  return Array.from({ length: users }, (_, i) => {
    const body = bodyOf(i);
    return Buffer.from(
      `POST /v1/check HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
  });
}

const httpMessages = httpMessagesFor(USERS);

/** By hand, from the published field numbers: domain = 1, descriptors = 2 { entries = 1 { key = 1, value = 2 } }. */
const grpcMessages = Array.from({ length: USERS }, (_, i) => {
  const field = (/** @type {number} */ number, /** @type {Buffer | string} */ content) => {
    const bytes = Buffer.from(content);
    return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
  };
  const entry = Buffer.concat([field(1, "user"), field(2, `user-${i}`)]);
  const message = Buffer.concat([field(1, "bench"), field(2, field(1, entry))]);
  const frame = Buffer.alloc(5);
  frame.writeUInt32BE(message.length, 1);
  return Buffer.concat([frame, message]);
});

/** @param {string} kind @param {Buffer} [constant] */
export async function start(kind, constant = Buffer.alloc(0)) {
  const file = fileURLToPath(new URL("./service-contestant.mjs", import.meta.url));
  const child = fork(file, [kind, constant.toString("hex")]);
  const [{ ports }] = await once(child, "message");
  const cpuUs = async () => {
    child.send("cpu");
    const [answer] = await once(child, "message");
    return answer.cpuUs;
  };
  return { ports, cpuUs, stop: () => child.disconnect() };
}

/** @typedef {Awaited<ReturnType<typeof start>>} Started */

/** @param {Started} server @param {() => Promise<Record<string, number>>} load @param {number} count */
async function measured(server, load, count) {
  const before = await server.cpuUs();
  const figures = await load();
  return { ...figures, nodeUs: ((await server.cpuUs()) - before) / count };
}

async function limiterAloneUs() {
  const limiter = createLimiter({ rules: /** @type {any} */ (rules) });
  const count = 200_000;
  for (let round = 0; ; round++) {
    const before = process.cpuUsage();
    for (let i = 0; i < count; i++) await limiter.check({ user: `user-${i % USERS}`, path: "/v1/orders" });
    const { user, system } = process.cpuUsage(before);
    if (round === 1) return (user + system) / count;
  }
}

/**
 * `--peer grpc=HOST:PORT`: other servers of Envoy's rate limit service.
 * @param {readonly string[]} texts
 */
export function parsePeers(texts) {
  return texts.map((text) => {
    const [, host, port] = /^grpc=([^:]+):(\d+)$/.exec(text) ?? [];
    if (host === undefined) throw new Error(`--peer: expected grpc=HOST:PORT, got ${JSON.stringify(text)}`);
    return { name: `peer at ${host}:${port}`, host, port: Number(port) };
  });
}

/** @param {{ quick: boolean, repetitions: number, redisUrl?: string, peers?: ReturnType<typeof parsePeers> }} options */
export async function serviceSections({ quick, repetitions, redisUrl, peers = [] }) {
  const sluice = await start("sluice");
  const onRedis = redisUrl === undefined ? undefined : await start("sluice redis", Buffer.from(redisUrl));
  const answer = await fetch(`http://127.0.0.1:${sluice.ports.http}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: bodyOf(0),
  });
  const constant = Buffer.from(await answer.arrayBuffer());
  const nodeHttp = await start("node:http", constant);
  const fastify = await start("fastify", constant);
  const grpcJs = await start("grpc-js", await grpcAnswer(sluice.ports.grpc));
  try {
    const count = quick ? 15_000 : 60_000;
    const overHttp = (/** @type {Started} */ server) => () =>
      measured(
        server,
        () => loadHttp({ port: server.ports.http, count, connections: 64, messages: httpMessages }),
        count,
      );
    const overGrpc = (/** @type {number} */ connections) => ({
      title: `service over gRPC: ShouldRateLimit, 64 in flight on ${connections} ${connections === 1 ? "connection" : "connections"}`,
      base: "grpc-js, a constant",
      contestants: grpcContestants({
        count: quick ? 10_000 : 40_000,
        connections,
        peers,
        servers: { grpcJs, sluice, onRedis },
      }),
    });
    const sections = [
      {
        title: "service over HTTP: POST /v1/check, 64 connections",
        base: "node:http, a constant",
        results: await interleaved(
          {
            "node:http, a constant": overHttp(nodeHttp),
            "fastify, a constant": overHttp(fastify),
            "sluice, a decision": overHttp(sluice),
            ...(onRedis && { "sluice, a decision on Redis": overHttp(onRedis) }),
          },
          repetitions,
        ),
      },
    ];
    for (const { title, base, contestants } of [overGrpc(1), overGrpc(64)]) {
      sections.push({ title, base, results: await interleaved(contestants, repetitions) });
    }
    return { sections, limiterUs: await limiterAloneUs() };
  } finally {
    for (const server of [sluice, onRedis, nodeHttp, fastify, grpcJs]) server?.stop();
  }
}

/**
 * @param {{ count: number, connections: number, peers: ReturnType<typeof parsePeers>,
 *   servers: { grpcJs: Started, sluice: Started, onRedis: Started | undefined } }} options
 */
function grpcContestants({ count, connections, peers, servers: { grpcJs, sluice, onRedis } }) {
  const load = { count, connections, inFlight: 64, messages: grpcMessages, path: GRPC_PATH };
  const of = (/** @type {Started} */ server) => () =>
    measured(server, () => loadFrames({ ...load, port: server.ports.grpc }), count);
  return {
    "grpc-js, a constant": of(grpcJs),
    "sluice, a decision": of(sluice),
    ...(onRedis && { "sluice, a decision on Redis": of(onRedis) }),
    ...Object.fromEntries(peers.map(({ name, host, port }) => [name, () => loadFrames({ ...load, host, port })])),
  };
}

/** One answer of the service, without its frame. @param {number} port */
async function grpcAnswer(port) {
  const { connect } = await import("node:http2");
  const session = connect(`http://127.0.0.1:${port}`);
  const stream = session.request({
    ":method": "POST",
    ":path": GRPC_PATH,
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.end(grpcMessages[0]);
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  session.close();
  return Buffer.concat(chunks).subarray(5);
}

/** @param {Awaited<ReturnType<typeof serviceSections>>} outcome */
export function serviceBars({ sections: [http, grpc, manyConnections] }) {
  const share = (/** @type {any} */ { results, base }) =>
    results["sluice, a decision"].perSecond / results[base].perSecond;
  return [
    { what: "service over HTTP: throughput of a bare node:http server", measured: share(http), least: LEAST_SHARE },
    { what: "service over gRPC, 1 connection: throughput of a bare grpc-js server", measured: share(grpc), least: 1.2 },
    { what: "the same, 64 connections", measured: share(manyConnections), least: 1.2 },
  ].map(({ least, ...bar }) => ({ ...bar, wanted: `at least ${least}`, met: bar.measured >= least }));
}

/** @param {Awaited<ReturnType<typeof serviceSections>>} outcome */
export function printService(outcome) {
  for (const section of outcome.sections) {
    printSection(section);
    const ours = /** @type {any} */ (section.results)["sluice, a decision"].nodeUs;
    const outside = Math.round((1 - outcome.limiterUs / ours) * 100);
    console.log(
      `  of ${ours.toFixed(1)} us a request, the limiter takes ${outcome.limiterUs.toFixed(2)} us; ${outside} % is transport`,
    );
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const quick = process.argv.includes("--quick");
  const outcome = await serviceSections({ quick, repetitions: quick ? 3 : 5 });
  printService(outcome);
  const bars = serviceBars(outcome);
  printBars(bars);
  const jsonAt = process.argv.indexOf("--json");
  if (jsonAt !== -1)
    writeFileSync(process.argv[jsonAt + 1] ?? "service.json", `${JSON.stringify({ ...outcome, bars }, null, 2)}\n`);
}
