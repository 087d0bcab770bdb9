/**
 * envoyproxy/ratelimit's variables that have no effect here. The service warns at startup about each that is set, because a silently
 * dropped setting is otherwise found during an incident. `docs/from-envoyproxy-ratelimit.md` has the same table, checked by a test.
 * In: the environment. Out: names with reasons. Pure.
 */
import { MARKERS } from "./reference-environment.js";

type Environment = Readonly<Record<string, string | undefined>>;

interface Ignored {
  readonly why: string;
  readonly names: readonly string[];
}

/** By reason, in the order of the docs. */
export const ignored: readonly Ignored[] = [
  {
    why: "limits per second are counted in --store with all others",
    names: [
      "REDIS_PERSECOND",
      "REDIS_PERSECOND_SOCKET_TYPE",
      "REDIS_PERSECOND_TYPE",
      "REDIS_PERSECOND_URL",
      "REDIS_PERSECOND_POOL_SIZE",
      "REDIS_PERSECOND_AUTH",
      "REDIS_PERSECOND_TLS",
      "REDIS_PERSECOND_SENTINEL_AUTH",
      "REDIS_PERSECOND_PIPELINE_WINDOW",
      "REDIS_PERSECOND_PIPELINE_LIMIT",
      "REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM",
      "REDIS_PERSECOND_TIMEOUT",
      "REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR",
    ],
  },
  {
    why: "each process has one connection to a node, which batches by itself and reconnects for ever",
    names: [
      "REDIS_POOL_SIZE",
      "REDIS_POOL_ON_EMPTY_BEHAVIOR",
      "REDIS_PIPELINE_WINDOW",
      "REDIS_PIPELINE_LIMIT",
      "REDIS_CLUSTER_PIPELINE_PARALLELISM",
      "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION",
      "REDIS_STARTUP_INITIAL_INTERVAL",
      "REDIS_STARTUP_MAX_INTERVAL",
      "REDIS_STARTUP_MAX_ELAPSED_TIME",
    ],
  },
  { why: "Redis is reached by TCP alone", names: ["REDIS_SOCKET_TYPE"] },
  { why: "Sentinels are asked with the password of --store (REDIS_AUTH)", names: ["REDIS_SENTINEL_AUTH"] },
  {
    why: "the host name in a certificate is always verified; --store-ca names a private authority",
    names: ["REDIS_TLS_SKIP_HOSTNAME_VERIFICATION"],
  },
  {
    why: "there is no memcached backend",
    names: [
      "MEMCACHE_HOST_PORT",
      "MEMCACHE_MAX_IDLE_CONNS",
      "MEMCACHE_SRV",
      "MEMCACHE_SRV_REFRESH",
      "MEMCACHE_TLS",
      "MEMCACHE_TLS_CLIENT_CERT",
      "MEMCACHE_TLS_CLIENT_KEY",
      "MEMCACHE_TLS_CACERT",
      "MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION",
    ],
  },
  {
    why: "counters expire when they no longer matter, and refusals are remembered in process anyway",
    names: ["EXPIRATION_JITTER_MAX_SECONDS", "LOCAL_CACHE_SIZE_IN_BYTES"],
  },
  {
    why: "refused requests are counted only with --envoy-count-refused true",
    names: ["STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"],
  },
  {
    why: "there is no statsd; /metrics answers Prometheus, and --otlp pushes",
    names: [
      "USE_STATSD",
      "USE_DOG_STATSD",
      "USE_DOG_STATSD_MOGRIFIERS",
      "STATSD_HOST",
      "STATSD_PORT",
      "EXTRA_TAGS",
      "STATS_FLUSH_INTERVAL",
      "DISABLE_STATS",
    ],
  },
  {
    why: "metrics are answered on /metrics, with the reference's default names and seconds",
    names: ["PROMETHEUS_PATH", "PROMETHEUS_MAPPER_YAML", "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS"],
  },
  {
    why: "--otlp sends traces, --trace-share samples them",
    names: [
      "TRACING_ENABLED",
      "TRACING_SERVICE_NAME",
      "TRACING_SERVICE_NAMESPACE",
      "TRACING_SERVICE_INSTANCE_ID",
      "TRACING_EXPORTER_PROTOCOL",
      "TRACING_SAMPLING_RATE",
    ],
  },
  { why: "there is no debug port; --log-level debug, /metrics", names: ["DEBUG_HOST", "DEBUG_PORT"] },
  { why: "gRPC listens on --host and --grpc-port", names: ["GRPC_HOST", "GRPC_UDS"] },
  {
    why: "gRPC connections have no age; --grpc-streams spreads calls",
    names: ["GRPC_MAX_CONNECTION_AGE", "GRPC_MAX_CONNECTION_AGE_GRACE"],
  },
  { why: "logs are JSON", names: ["LOG_FORMAT"] },
  {
    why: "hidden files are never read, and the folder is always watched",
    names: ["RUNTIME_IGNOREDOTFILES", "RUNTIME_WATCH_ROOT"],
  },
  {
    why: "the service starts with the last good limits or none, and /readyz reports them",
    names: ["FORCE_START_WITHOUT_INITIAL_CONFIG", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED"],
  },
  {
    why: "the xDS client has its own backoff and bounds",
    names: [
      "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
      "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL",
      "XDS_CLIENT_BACKOFF_MAX_INTERVAL",
      "XDS_CLIENT_BACKOFF_RANDOM_FACTOR",
      "XDS_CLIENT_BACKOFF_JITTER",
      "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES",
    ],
  },
];

/** Values that request what happens here anyway: no warning. For switches not listed, that is `false`. */
const asHere: Readonly<Record<string, string>> = {
  REDIS_SOCKET_TYPE: "tcp",
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: "true",
  PROMETHEUS_PATH: "/metrics",
  GRPC_HOST: "0.0.0.0",
  LOG_FORMAT: "json",
  RUNTIME_IGNOREDOTFILES: "true",
  RUNTIME_WATCH_ROOT: "true",
};

/** Variables that are set and have no effect, with the reason. Empty if the environment is not envoyproxy/ratelimit's. */
export function ignoredReferenceNames(env: Environment): { name: string; why: string }[] {
  if (!MARKERS.some((name) => env[name])) return [];
  return ignored.flatMap(({ why, names }) =>
    names.filter((name) => env[name] && !isAsHere(name, env[name])).map((name) => ({ name, why })),
  );
}

function isAsHere(name: string, value: string): boolean {
  const spelled = /^(1|t|true)$/i.test(value) ? "true" : /^(0|f|false)$/i.test(value) ? "false" : value;
  const wanted = asHere[name];
  return wanted === undefined ? spelled === "false" : spelled.toLowerCase() === wanted;
}
