/** For `restart.mjs`: an Envoy that asks a limiter and fails closed, an application behind it, and a load that counts its answers. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer, get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { components } from "../scripts/system-components.mjs";

const PORT = 21_090;
const type = (name) => `type.googleapis.com/envoy.extensions.${name}`;
const socket = (port) => ({ socket_address: { address: "127.0.0.1", port_value: port } });
const cluster = (name, port, rest = {}) => ({
  name,
  circuit_breakers: { thresholds: [{ max_connections: 4096, max_pending_requests: 4096, max_requests: 4096 }] },
  load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address: socket(port) } }] }] },
  ...rest,
});

function config({ app, limiter, timeout }) {
  const rateLimits = [{ actions: [{ request_headers: { header_name: "x-user", descriptor_key: "user" } }] }];
  const manager = {
    "@type": type("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "web",
    route_config: {
      virtual_hosts: [
        {
          name: "app",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "app", rate_limits: rateLimits } }],
        },
      ],
    },
    http_filters: [
      {
        name: "envoy.filters.http.ratelimit",
        typed_config: {
          "@type": type("filters.http.ratelimit.v3.RateLimit"),
          domain: "d",
          timeout,
          failure_mode_deny: true,
          rate_limit_service: {
            transport_api_version: "V3",
            grpc_service: { envoy_grpc: { cluster_name: "limiter" } },
          },
        },
      },
      { name: "envoy.filters.http.router", typed_config: { "@type": type("filters.http.router.v3.Router") } },
    ],
  };
  const http2 = {
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": type("upstreams.http.v3.HttpProtocolOptions"),
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
  };
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  return {
    static_resources: {
      listeners: [{ name: "web", address: socket(PORT), filter_chains: [{ filters }] }],
      clusters: [cluster("app", app), cluster("limiter", limiter, http2)],
    },
  };
}

/** @param {{ limiter: number, timeout: string }} options */
export async function startEnvoy({ limiter, timeout }) {
  const program = components.envoy.find();
  if (program === undefined) throw new Error("Envoy is not installed: `npm test` installs it");
  const app = createServer((_request, response) => response.end("ok")).listen(0, "127.0.0.1");
  app.keepAliveTimeout = 600_000;
  await once(app, "listening");
  const folder = mkdtempSync(join(tmpdir(), "sluice-restart-"));
  const file = join(folder, "envoy.json");
  writeFileSync(file, JSON.stringify(config({ app: app.address().port, limiter, timeout })));
  const child = spawn(program, ["-c", file, "--use-dynamic-base-id", "--concurrency", "2", "--log-level", "info"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (chunk) => {
    log += chunk;
  });
  while (!log.includes("starting workers")) await once(child.stderr, "data");
  return {
    port: PORT,
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
      app.closeAllConnections();
      app.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Requests without pause, one at a time on each connection. */
export class Load {
  failed = 0;
  longestGapMs = 0;
  #passed = 0;
  #lastMs = performance.now();
  #isRunning = true;
  #wake = () => undefined;
  #loops;

  constructor({ port, connections }) {
    const agent = new Agent({ keepAlive: true, maxSockets: connections });
    this.#loops = Promise.all(Array.from({ length: connections }, () => this.#send(agent, port)));
  }

  /** Resolves when so many more have passed. */
  async passed(count) {
    const least = this.#passed + count;
    while (this.#passed < least) await new Promise((resolve) => (this.#wake = resolve));
  }

  forgetGap() {
    this.longestGapMs = 0;
  }

  async stop() {
    this.#isRunning = false;
    await this.#loops;
  }

  async #send(agent, port) {
    while (this.#isRunning) {
      const status = await new Promise((resolve) => {
        const request = get({ agent, host: "127.0.0.1", port, headers: { "x-user": "all" } }, (answer) => {
          answer.resume().once("end", () => resolve(answer.statusCode));
        });
        request.once("error", () => resolve(0));
      });
      if (status !== 200) {
        this.failed++;
        continue;
      }
      const nowMs = performance.now();
      this.longestGapMs = Math.max(this.longestGapMs, nowMs - this.#lastMs);
      this.#lastMs = nowMs;
      this.#passed++;
      this.#wake();
    }
  }
}
