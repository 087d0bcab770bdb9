/**
 * Maps the environment of an envoyproxy/ratelimit deployment to our settings, so that its image can be replaced and its manifest kept.
 * Many shells and platforms set names such as HOST and PORT; they count only if the environment is clearly that program's, that is, if it
 * names the source of the limits. `docs/from-envoyproxy-ratelimit.md` has the same table, checked by a test.
 * In: the environment. Out: settings as text, each with its variable. Pure.
 */
import { join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

interface ReferenceSetting {
  readonly text: string;
  /** The variable, for messages. */
  readonly where: string;
}

/** At least one of these must be set for any of the others to count. */
export const MARKERS = ["CONFIG_TYPE", "RUNTIME_ROOT", "RUNTIME_SUBDIRECTORY"] as const;

/** Variables that correspond to one of our settings. */
export const renamed: Readonly<Record<string, string>> = {
  HOST: "host",
  PORT: "port",
  GRPC_PORT: "grpc-port",
  GRPC_CLIENT_TLS_CACERT: "grpc-tls-client-ca",
  GRPC_CLIENT_TLS_SAN: "grpc-tls-client-san",
  MERGE_DOMAIN_CONFIG: "envoy-merge-domains",
  SHADOW_MODE: "envoy-shadow-mode",
  QUOTA_MODE: "envoy-quota-mode",
  RESPONSE_DYNAMIC_METADATA: "envoy-dynamic-metadata",
  USE_PROMETHEUS: "envoy-metrics",
  NEAR_LIMIT_RATIO: "envoy-near-limit-ratio",
  CACHE_KEY_PREFIX: "store-prefix",
};

const switches = new Set([
  "MERGE_DOMAIN_CONFIG",
  "SHADOW_MODE",
  "QUOTA_MODE",
  "RESPONSE_DYNAMIC_METADATA",
  "USE_PROMETHEUS",
]);

/** Variables that are combined with others into a setting. */
export const combined: Readonly<Record<string, string>> = {
  CONFIG_TYPE: "envoy-config, envoy-xds",
  RUNTIME_ROOT: "envoy-config",
  RUNTIME_SUBDIRECTORY: "envoy-config",
  RUNTIME_APPDIRECTORY: "envoy-config",
  CONFIG_GRPC_XDS_SERVER_URL: "envoy-xds",
  CONFIG_GRPC_XDS_NODE_ID: "envoy-xds-node-id",
  CONFIG_GRPC_XDS_NODE_METADATA: "envoy-xds-node-metadata",
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: "envoy-xds-headers",
  CONFIG_GRPC_XDS_SERVER_USE_TLS: "envoy-xds-tls",
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: "envoy-xds-cert",
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: "envoy-xds-key",
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: "envoy-xds-ca",
  CONFIG_GRPC_XDS_SERVER_TLS_SAN: "envoy-xds-server-name",
  GRPC_SERVER_USE_TLS: "grpc-tls-cert, grpc-tls-key",
  GRPC_SERVER_TLS_CERT: "grpc-tls-cert",
  GRPC_SERVER_TLS_KEY: "grpc-tls-key",
  LIMIT_RESPONSE_HEADERS_ENABLED: "envoy-headers",
  LIMIT_LIMIT_HEADER: "envoy-headers",
  LIMIT_REMAINING_HEADER: "envoy-headers",
  LIMIT_RESET_HEADER: "envoy-headers",
  PROMETHEUS_ADDR: "metrics-address",
  LOG_LEVEL: "log-level",
  REDIS_URL: "store",
  REDIS_TYPE: "store",
  REDIS_AUTH: "store",
  REDIS_TLS: "store",
  REDIS_TLS_CACERT: "store-ca",
  REDIS_TLS_CLIENT_CERT: "store-cert",
  REDIS_TLS_CLIENT_KEY: "store-key",
  REDIS_TIMEOUT: "store-deadline",
  BACKEND_TYPE: "store",
};

const logLevels: Readonly<Record<string, string>> = {
  trace: "debug",
  debug: "debug",
  info: "info",
  warn: "warn",
  warning: "warn",
  error: "error",
  fatal: "error",
  panic: "error",
};

export function referenceSettings(env: Environment): ReadonlyMap<string, ReferenceSetting> {
  const settings = new Map<string, ReferenceSetting>();
  if (!MARKERS.some((name) => env[name])) return settings;
  const set = (name: string, where: string, text: string | undefined): void => {
    if (text !== undefined && text !== "") settings.set(name, { text, where });
  };
  for (const [variable, name] of Object.entries(renamed)) {
    const text = env[variable];
    set(name, variable, switches.has(variable) && text ? spelledBoolean(text) : text);
  }
  // Listen on all addresses, as the reference does: in a container, probes could not reach loopback.
  if (!env.HOST) set("host", "HOST", "0.0.0.0");
  if (env.LOG_LEVEL) set("log-level", "LOG_LEVEL", logLevels[env.LOG_LEVEL.toLowerCase()] ?? env.LOG_LEVEL);
  limitSources(env, set);
  if (isTrue(env.GRPC_SERVER_USE_TLS)) {
    set("grpc-tls-cert", "GRPC_SERVER_TLS_CERT", env.GRPC_SERVER_TLS_CERT);
    set("grpc-tls-key", "GRPC_SERVER_TLS_KEY", env.GRPC_SERVER_TLS_KEY);
  }
  if (env.LIMIT_RESPONSE_HEADERS_ENABLED) set("envoy-headers", "LIMIT_RESPONSE_HEADERS_ENABLED", headersOf(env));
  // `:9090` means all addresses.
  if (isTrue(env.USE_PROMETHEUS))
    set("metrics-address", "PROMETHEUS_ADDR", (env.PROMETHEUS_ADDR || ":9090").replace(/^:/, "0.0.0.0:"));
  redisSettings(env, set);
  return settings;
}

type Set = (name: string, where: string, text: string | undefined) => void;

function limitSources(env: Environment, set: Set): void {
  if (env.CONFIG_TYPE !== "GRPC_XDS_SOTW") {
    const root = env.RUNTIME_ROOT || "/srv/runtime_data/current";
    set(
      "envoy-config",
      "RUNTIME_ROOT",
      join(root, env.RUNTIME_SUBDIRECTORY ?? "", env.RUNTIME_APPDIRECTORY || "config"),
    );
    return;
  }
  set("envoy-xds", "CONFIG_GRPC_XDS_SERVER_URL", env.CONFIG_GRPC_XDS_SERVER_URL || "localhost:18000");
  set("envoy-xds-node-id", "CONFIG_GRPC_XDS_NODE_ID", env.CONFIG_GRPC_XDS_NODE_ID);
  set("envoy-xds-node-metadata", "CONFIG_GRPC_XDS_NODE_METADATA", env.CONFIG_GRPC_XDS_NODE_METADATA);
  // The reference separates with colons: `name:value`.
  const headers = env.CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS?.replaceAll(/(^|,)([^:,]+):/g, "$1$2=");
  set("envoy-xds-headers", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", headers);
  if (!isTrue(env.CONFIG_GRPC_XDS_SERVER_USE_TLS)) return;
  set("envoy-xds-tls", "CONFIG_GRPC_XDS_SERVER_USE_TLS", "true");
  set("envoy-xds-cert", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", env.CONFIG_GRPC_XDS_CLIENT_TLS_CERT);
  set("envoy-xds-key", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", env.CONFIG_GRPC_XDS_CLIENT_TLS_KEY);
  set("envoy-xds-ca", "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", env.CONFIG_GRPC_XDS_SERVER_TLS_CACERT);
  set("envoy-xds-server-name", "CONFIG_GRPC_XDS_SERVER_TLS_SAN", env.CONFIG_GRPC_XDS_SERVER_TLS_SAN);
}

function redisSettings(env: Environment, set: Set): void {
  // Without Redis, each process would silently have its own counters: refuse, and name the value.
  if (env.BACKEND_TYPE && env.BACKEND_TYPE !== "redis") set("store", "BACKEND_TYPE", env.BACKEND_TYPE);
  else set("store", "REDIS_URL", storeOf(env));
  set("store-deadline", "REDIS_TIMEOUT", env.REDIS_TIMEOUT);
  if (!isTrue(env.REDIS_TLS)) return;
  set("store-ca", "REDIS_TLS_CACERT", env.REDIS_TLS_CACERT);
  set("store-cert", "REDIS_TLS_CLIENT_CERT", env.REDIS_TLS_CLIENT_CERT);
  set("store-key", "REDIS_TLS_CLIENT_KEY", env.REDIS_TLS_CLIENT_KEY);
}

function headersOf(env: Environment): string {
  if (!isTrue(env.LIMIT_RESPONSE_HEADERS_ENABLED)) return "off";
  return [
    env.LIMIT_LIMIT_HEADER || "RateLimit-Limit",
    env.LIMIT_REMAINING_HEADER || "RateLimit-Remaining",
    env.LIMIT_RESET_HEADER || "RateLimit-Reset",
  ].join(",");
}

/** Addresses without a scheme, several for a cluster; for Sentinel, the master's name comes first. */
function storeOf(env: Environment): string | undefined {
  const url = env.REDIS_URL;
  if (!url || /^rediss?(\+|:\/\/)/.test(url)) return url;
  const type = (env.REDIS_TYPE || "SINGLE").toUpperCase();
  const scheme = isTrue(env.REDIS_TLS) ? "rediss" : "redis";
  const auth = env.REDIS_AUTH ? `${spelledAuth(env.REDIS_AUTH)}@` : "";
  if (type === "CLUSTER") return `${scheme}+cluster://${auth}${url}`;
  if (type !== "SENTINEL") return `${scheme}://${auth}${url}`;
  const [master, ...hosts] = url.split(",");
  return `${scheme}+sentinel://${auth}${hosts.join(",")}/${master}`;
}

/** `password`, or `user:password`. */
function spelledAuth(auth: string): string {
  const at = auth.indexOf(":");
  const [user, password] = at < 0 ? ["", auth] : [auth.slice(0, at), auth.slice(at + 1)];
  return `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
}

/** Go's spellings of booleans. */
function spelledBoolean(text: string): string {
  if (/^(1|t|T|true|TRUE|True)$/.test(text)) return "true";
  return /^(0|f|F|false|FALSE|False)$/.test(text) ? "false" : text;
}

function isTrue(text: string | undefined): boolean {
  return text !== undefined && spelledBoolean(text) === "true";
}
