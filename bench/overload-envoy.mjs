/** A real Envoy with its adaptive concurrency filter before a server, for `overload-real.mjs`. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { components } from "../scripts/system-components.mjs";

const address = (port) => ({ socket_address: { address: "127.0.0.1", port_value: port } });
const type = (name) => `type.googleapis.com/envoy.extensions.filters.${name}`;

export const hasEnvoy = () => components.envoy.find() !== undefined;

/** With the filter's defaults. */
export async function startEnvoy(upstreamPort) {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-envoy-"));
  const file = join(folder, "envoy.json");
  writeFileSync(file, JSON.stringify(configOf(port, upstreamPort)));
  const child = spawn(components.envoy.find(), ["-c", file, "--use-dynamic-base-id", "--concurrency", "1"], {
    stdio: "ignore",
  });
  const stop = async () => {
    if (child.exitCode === null && child.kill()) await once(child, "exit");
    rmSync(folder, { recursive: true, force: true });
  };
  for (let i = 0; !(await accepts(port)); i++) {
    if (i > 400 || child.exitCode !== null) {
      await stop();
      throw new Error("Envoy does not listen");
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { port, stop };
}

function configOf(port, upstreamPort) {
  const adaptive = {
    "@type": type("http.adaptive_concurrency.v3.AdaptiveConcurrency"),
    gradient_controller_config: {
      sample_aggregate_percentile: { value: 50 },
      concurrency_limit_params: { concurrency_update_interval: "0.1s" },
      min_rtt_calc_params: { interval: "60s", request_count: 50 },
    },
  };
  const manager = {
    "@type": type("network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "in",
    route_config: {
      virtual_hosts: [{ name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "app" } }] }],
    },
    http_filters: [
      { name: "adaptive", typed_config: adaptive },
      { name: "router", typed_config: { "@type": type("http.router.v3.Router") } },
    ],
  };
  const many = { max_connections: 100_000, max_pending_requests: 100_000, max_requests: 100_000 };
  const endpoint = { endpoint: { address: address(upstreamPort) } };
  return {
    static_resources: {
      listeners: [
        {
          name: "in",
          address: address(port),
          filter_chains: [{ filters: [{ name: "http", typed_config: manager }] }],
        },
      ],
      clusters: [
        {
          name: "app",
          type: "STATIC",
          circuit_breakers: { thresholds: [many] },
          load_assignment: { cluster_name: "app", endpoints: [{ lb_endpoints: [endpoint] }] },
        },
      ],
    },
  };
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

async function freePort() {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
