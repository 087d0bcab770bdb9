/** The manifest that puts Sluice in the place of Envoy Gateway's limiter, against what Envoy Gateway deploys (its main of August 2026). */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { resolveSettings } from "../../packages/server/src/settings/settings.js";
import type { Json } from "./running-service.js";

const file = new URL("../../deploy/envoy-gateway/envoy-gateway.yaml", import.meta.url);
const gateway = parse(parse(readFileSync(file, "utf8")).data["envoy-gateway.yaml"]) as Json;
const { rateLimitDeployment } = gateway.provider.kubernetes;
const pod: Json = rateLimitDeployment.patch.value.spec.template;

test("the patch meets the container by its name, and adds what its read-only root needs", () => {
  expect(pod.spec.containers).toHaveLength(1);
  const [container] = pod.spec.containers;
  expect(container.name).toBe("envoy-ratelimit");
  const [mount] = container.volumeMounts;
  expect(pod.spec.volumes).toEqual([{ name: mount.name, emptyDir: {} }]);
  expect(container.env).toEqual([{ name: "SLUICE_DATA_FOLDER", value: mount.mountPath }]);
  // Envoy Gateway's own volumes and mounts are joined by name and path: ours take none of them.
  expect(["certs", "statsd-exporter-config", "redis-certs"]).not.toContain(mount.name);
  expect(container.command).toEqual(["sluice", "serve"]);
  expect(container.securityContext).toBeUndefined();
  expect(rateLimitDeployment.replicas).toBe(2);
});

test("ports, probes and metrics are where Envoy Gateway's Service and annotations say", () => {
  const env = {
    REDIS_SOCKET_TYPE: "tcp",
    REDIS_URL: gateway.rateLimit.backend.redis.url,
    USE_STATSD: "false",
    CONFIG_TYPE: "GRPC_XDS_SOTW",
    CONFIG_GRPC_XDS_SERVER_URL: "envoy-gateway:18001",
    CONFIG_GRPC_XDS_NODE_ID: "envoy-ratelimit",
    USE_PROMETHEUS: "true",
    PROMETHEUS_ADDR: ":19001",
    PROMETHEUS_MAPPER_YAML: "/etc/statsd-exporter/conf.yaml",
  };
  const settings = resolveSettings({ flags: {}, env });
  expect([settings.host, settings.port, settings["grpc-port"]]).toEqual(["0.0.0.0", 8080, 8081]);
  expect(settings["metrics-address"]).toBe("0.0.0.0:19001");
  expect(settings.store).toBe("redis://redis.redis-system.svc:6379");
  // The annotations prometheus.io/port and /path of Envoy Gateway stand: 19001, /metrics.
  expect(pod.metadata).toBeUndefined();
});
