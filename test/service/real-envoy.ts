/** A real Envoy for tests: the example's configuration, or one of a test's own, with ports of its own. */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { components } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { makeTempFolder } from "../harness/leash.js";
import { until } from "../harness/redis-cluster.js";
import { type ServerProcess, startServerProcess } from "../harness/server-process.js";
import type { Json } from "./running-service.js";

/** The parts that tests differ in. */
export interface EnvoyOptions {
  /** HOST:PORT of the rate limit service, and of the application. Several are asked for their health. */
  readonly limiter: string | readonly string[];
  readonly app: string;
  readonly domain: string;
  /** Of the route, in the filter's own configuration: only there hits_addend is sent. */
  readonly rateLimits: Json[];
  readonly route?: Json;
  /** One listener each; the first is `url`. */
  readonly failureModeDeny?: readonly boolean[];
  /** Of a call to the rate limit service. Long by default: a call that a busy machine delays would pass, or fail, undecided. */
  readonly timeout?: string;
}

export interface RealEnvoy {
  readonly urls: readonly string[];
  readonly url: string;
  stop(): Promise<void>;
}

const type = (name: string) => `type.googleapis.com/envoy.extensions.${name}`;

export async function startEnvoy(options: EnvoyOptions): Promise<RealEnvoy> {
  const modes = options.failureModeDeny ?? [false];
  const ports = await Promise.all(modes.map(() => freePort()));
  const config = {
    static_resources: {
      listeners: ports.map((port, i) => listener(port, modes[i]!, options)),
      clusters: [cluster("app", [options.app]), cluster("limiter", [options.limiter].flat(), true)],
    },
  };
  const process = await startConfigured(stringify(config));
  // The workers accept a moment after they are started.
  for (const port of ports) await until("the listener accepts", () => accepts(port));
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  return { urls, url: urls[0]!, stop: () => process.stop() };
}

export const envoyExample = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../examples/envoy/${name}`, import.meta.url)), "utf8");

export interface QuotaEnvoy {
  /** The status that a request of a tenant gets. */
  get(tenant: string): Promise<number>;
  stop(): Promise<void>;
}

/** The example for the quota service. `edit` changes its text. */
export async function startQuotaEnvoy(app: string, grpc: string, edit = (text: string) => text): Promise<QuotaEnvoy> {
  const port = await freePort();
  const text = edit(envoyExample("quota.yaml"))
    .replace("port_value: 8090", `port_value: ${port}`)
    .replace("port_value: 3000", `port_value: ${app.split(":")[1]}`)
    .replace("port_value: 8081", `port_value: ${grpc.split(":")[1]}`);
  const envoy = await startConfigured(text);
  await until("the listener accepts", () => accepts(port));
  return {
    async get(tenant) {
      const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { "x-tenant": tenant } });
      await answer.arrayBuffer();
      return answer.status;
    },
    stop: () => envoy.stop(),
  };
}

export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/** `text`: a configuration in YAML. */
export function startConfigured(text: string): Promise<ServerProcess> {
  const file = join(makeTempFolder("real-envoy"), "envoy.yaml");
  writeFileSync(file, text);
  return startServerProcess({
    command: components.envoy.find()!,
    args: ["-c", file, "--use-dynamic-base-id", "--concurrency", "2", "--log-level", "info"],
    // Listeners open when every cluster is known, with health checks: later than its main loop starts.
    readyLine: /all dependencies initialized. starting workers/,
    timeoutMs: 60_000,
    // Its health checks and timeouts measure Sluice; on a busy machine they would measure how long Envoy waits for a processor.
    urgent: true,
  });
}

function listener(
  port: number,
  deny: boolean,
  { domain, rateLimits, route = {}, timeout = "60s" }: EnvoyOptions,
): Json {
  return {
    name: `web-${port}`,
    address: address(`127.0.0.1:${port}`),
    filter_chains: [
      {
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            typed_config: {
              "@type": type("filters.network.http_connection_manager.v3.HttpConnectionManager"),
              stat_prefix: "web",
              route_config: {
                virtual_hosts: [
                  {
                    name: "app",
                    domains: ["*"],
                    routes: [
                      {
                        match: { prefix: "/" },
                        route: { cluster: "app", ...route },
                        typed_per_filter_config: {
                          "envoy.filters.http.ratelimit": {
                            "@type": type("filters.http.ratelimit.v3.RateLimitPerRoute"),
                            rate_limits: rateLimits,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              http_filters: [
                {
                  name: "envoy.filters.http.ratelimit",
                  typed_config: {
                    "@type": type("filters.http.ratelimit.v3.RateLimit"),
                    domain,
                    timeout,
                    failure_mode_deny: deny,
                    enable_x_ratelimit_headers: "DRAFT_VERSION_03",
                    rate_limit_service: {
                      transport_api_version: "V3",
                      grpc_service: { envoy_grpc: { cluster_name: "limiter" } },
                    },
                  },
                },
                { name: "envoy.filters.http.router", typed_config: { "@type": type("filters.http.router.v3.Router") } },
              ],
            },
          },
        ],
      },
    ],
  };
}

function cluster(name: string, at: readonly string[], http2 = false): Json {
  return {
    name,
    circuit_breakers: {
      thresholds: [{ max_connections: 4096, max_pending_requests: 4096, max_requests: 4096, max_retries: 64 }],
    },
    ...(http2 && {
      typed_extension_protocol_options: {
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
          "@type": type("upstreams.http.v3.HttpProtocolOptions"),
          explicit_http_config: { http2_protocol_options: {} },
        },
      },
    }),
    ...(at.length > 1 && { health_checks: [gRpcHealth] }),
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: at.map((one) => ({ endpoint: { address: address(one) } })) }],
    },
  };
}

/** As the guide has it: an instance that ends says so, and is left alone before it goes. */
const gRpcHealth: Json = {
  timeout: "2s",
  interval: "0.2s",
  no_traffic_interval: "0.2s",
  unhealthy_threshold: 1,
  healthy_threshold: 1,
  grpc_health_check: { service_name: "ratelimit" },
};

function address(at: string): Json {
  const [host, port] = at.split(":");
  return { socket_address: { address: host, port_value: Number(port) } };
}

export interface TestApp {
  readonly at: string;
  readonly server: Server;
  /**
   * Requests that reached it, and the most that were under way at once. Requests that Envoy gave up are not among the latter: it
   * tells the limiter before this process can know of it, and their places may have others by then.
   */
  seen(): { total: number; most: number };
  close(): void;
}

interface UnderWay {
  isGivenUp: boolean;
}

/** An application that knows how many requests it has under way. `answer` ends each response. */
export async function startApp(
  answer: (request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse) => void,
): Promise<TestApp> {
  const underWay = new Set<UnderWay>();
  /** As each request found it, itself included. */
  const found: UnderWay[][] = [];
  const server = createServer((request, response) => {
    const one: UnderWay = { isGivenUp: false };
    underWay.add(one);
    found.push([...underWay]);
    // Before Envoy can have the answer: it frees the place only then.
    const end = response.end.bind(response) as (...args: unknown[]) => typeof response;
    response.end = ((...args: unknown[]) => {
      underWay.delete(one);
      return end(...args);
    }) as typeof response.end;
    response.once("close", () => {
      one.isGivenUp = underWay.delete(one);
    });
    answer(request, response);
  });
  // Envoy keeps connections: one that we close while it sends would be a 503 of neither's making.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    at: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    seen: () => ({
      total: found.length,
      most: Math.max(0, ...found.map((all) => all.filter(({ isGivenUp }) => !isGivenUp).length)),
    }),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
