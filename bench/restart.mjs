/**
 * `node bench/restart.mjs`: what a restart in place costs behind an Envoy that fails closed. SIGTERM, wait for the end, start again, under
 * load; one contestant starts again at once, while its predecessor drains. Counts answers other than 200, and the longest time without a 200.
 *   --er FILE          the binary of envoyproxy/ratelimit, restarted in the same rounds
 *   --rounds N         3    --connections N   64
 *   --timeout T        2s   of Envoy's call; its own default is 20ms, which no waiting call survives
 * Needs `npm run build`, redis-server, and the Envoy that `npm test` installs.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { median } from "./measure.mjs";
import { startRedis } from "./redis-server.mjs";
import { Load, startEnvoy } from "./restart-envoy.mjs";

const { values } = parseArgs({
  options: {
    er: { type: "string" },
    rounds: { type: "string", default: "3" },
    connections: { type: "string", default: "64" },
    timeout: { type: "string", default: "2s" },
  },
});
const bin = fileURLToPath(new URL("../packages/server/bin/sluice.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "sluice-restart-"));
mkdirSync(join(folder, "ratelimit", "config"), { recursive: true });
writeFileSync(
  join(folder, "ratelimit", "config", "d.yaml"),
  "domain: d\ndescriptors:\n  - key: user\n    rate_limit: { unit: hour, requests_per_unit: 100000000 }\n",
);
const redis = await startRedis();

/** Bound and never listened on: it outlives the processes that inherit it, as a socket of systemd's does. */
function holdSocket() {
  const { TCP, constants } = /** @type {any} */ (process).binding("tcp_wrap");
  const handle = new TCP(constants.SERVER);
  handle.bind("127.0.0.1", 0);
  const at = {};
  handle.getsockname(at);
  return { port: at.port, fd: handle.fd };
}

const held = holdSocket();
const ports = { plain: 21_081, er: 21_082, successor: 21_085 };
const serveAfter = (drainDelay, name) => [
  ...["serve", "--port", "0", "--store", redis.url, "--drain-delay", drainDelay, "--log-level", "error"],
  ...["--data-folder", join(folder, name), "--envoy-config", join(folder, "ratelimit", "config")],
];
const serve = serveAfter("0", "data");
const contestants = {
  "Sluice, socket activation": {
    port: held.port,
    start: () =>
      spawn(
        "/bin/sh",
        [
          "-c",
          'export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=grpc; exec "$@"',
          "sh",
          process.execPath,
          bin,
          ...serve,
        ],
        { stdio: ["ignore", "ignore", "inherit", held.fd] },
      ),
  },
  Sluice: {
    port: ports.plain,
    start: () =>
      spawn(process.execPath, [bin, ...serve, "--grpc-port", String(ports.plain)], {
        stdio: ["ignore", "ignore", "inherit"],
      }),
  },
  "Sluice, successor at once": {
    port: ports.successor,
    isAtOnce: true,
    start: () =>
      spawn(process.execPath, [bin, ...serveAfter("3s", "succeeded"), "--grpc-port", String(ports.successor)], {
        stdio: ["ignore", "ignore", "inherit"],
      }),
  },
  ...(values.er !== undefined && {
    "envoyproxy/ratelimit": {
      port: ports.er,
      start: () =>
        spawn(values.er, [], {
          env: {
            RUNTIME_ROOT: folder,
            RUNTIME_SUBDIRECTORY: "ratelimit",
            RUNTIME_WATCH_ROOT: "false",
            USE_STATSD: "false",
            REDIS_SOCKET_TYPE: "tcp",
            REDIS_URL: `127.0.0.1:${redis.port}`,
            GRPC_HOST: "127.0.0.1",
            GRPC_PORT: String(ports.er),
            PORT: "21083",
            DEBUG_PORT: "21084",
            LOG_LEVEL: "error",
            DISABLE_STATS: "true",
          },
          stdio: "ignore",
        }),
    },
  }),
};

async function untilOpen(port) {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await Promise.race([once(socket, "connect").then(() => true), once(socket, "error")]).catch(
      () => false,
    );
    socket.destroy();
    if (isOpen === true) return;
    await sleep(5);
  }
}

async function restart({ port, start, isAtOnce }) {
  let service = start();
  await untilOpen(port);
  const envoy = await startEnvoy({ limiter: port, timeout: values.timeout });
  const load = new Load({ port: envoy.port, connections: Number(values.connections) });
  await load.passed(1_000);
  const before = load.failed;
  load.forgetGap();
  const ended = once(service, "exit");
  service.kill("SIGTERM");
  if (!isAtOnce) await ended;
  service = start();
  await ended;
  await load.passed(2_000);
  await load.stop();
  const result = { failed: load.failed - before, gapMs: load.longestGapMs };
  await envoy.stop();
  const left = once(service, "exit");
  service.kill("SIGTERM");
  await left;
  return result;
}

const results = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]));
for (let round = 0; round < Number(values.rounds); round++) {
  for (const [name, contestant] of Object.entries(contestants)) results[name].push(await restart(contestant));
}
console.log(
  `A restart in place behind an Envoy that fails closed: ${values.connections} connections, timeout ${values.timeout}, ` +
    `${values.rounds} rounds, load ${loadavg()[0].toFixed(1)}, node ${process.version}`,
);
for (const [name, rounds] of Object.entries(results)) {
  const failed = rounds.map((one) => one.failed);
  console.log(
    `  ${name.padEnd(28)} failed answers ${failed.join(", ")} (median ${median(failed)}); ` +
      `longest time without a 200: ${median(rounds.map((one) => one.gapMs)).toFixed(0)} ms`,
  );
}
await redis.stop();
rmSync(folder, { recursive: true, force: true });
process.exit(0);
