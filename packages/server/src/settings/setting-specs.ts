/**
 * Every setting of the service in one table: name, default, meaning, accepted values. `docs/settings.md` lists the same, checked by a test.
 * A setting `grpc-port` is the flag `--grpc-port`, the variable `SLUICE_GRPC_PORT` and the key `grpc-port` in `sluice.yaml`.
 */
import * as accept from "./accepted-settings.js";

export interface SettingSpec<T> extends accept.Accepted<T> {
  readonly meaning: string;
  /** As a user would write it; absent: the setting is off by default. */
  readonly default?: string;
  /** Never printed. */
  readonly secret?: true;
}

function setting<T>(accepted: accept.Accepted<T>, meaning: string, byDefault: string): SettingSpec<T>;
function setting<T>(accepted: accept.Accepted<T>, meaning: string): SettingSpec<T | undefined>;
function setting<T>(accepted: accept.Accepted<T>, meaning: string, byDefault?: string): SettingSpec<T | undefined> {
  return { ...accepted, meaning, ...(byDefault !== undefined && { default: byDefault }) };
}

function secret<T>(accepted: accept.Accepted<T>, meaning: string): SettingSpec<T | undefined> {
  return { ...setting(accepted, meaning), secret: true };
}

/** In the order of `sluice serve --help`. */
export const settingSpecs = {
  host: setting(accept.text("HOST", "a host name or address"), "Address to listen on.", "127.0.0.1"),
  port: setting(accept.port, "Port of the HTTP API; 0 picks a free one.", "8080"),
  "grpc-port": setting(accept.port, "Port of Envoy's rate limit service (gRPC); 0 picks a free one.", "8081"),
  workers: setting(
    accept.wholeNumber({ least: 1, most: 256 }),
    "Processes that share the ports. More than one needs a Redis store: counters in memory belong to one process.",
    "1",
  ),
  store: setting(
    accept.store,
    "Where counters live: memory, redis://…, rediss://…, redis+sentinel://h1,h2/master or redis+cluster://h1,h2.",
    "memory",
  ),
  "memory-limit": setting(
    accept.memory,
    "With --store memory: how much memory counters and request ids may take. Past it the store evicts idle counters first, and logs a warning.",
    "256MiB",
  ),
  "store-deadline": setting(
    accept.duration,
    "How long the store may take before a rule's onStoreFailure answers.",
    "50ms",
  ),
  "store-prefix": setting(
    accept.keyPrefix,
    "Put before every key in Redis, also in the global store, such as shop: Fleets with different prefixes share nothing there.",
  ),
  "store-ca": setting(
    accept.file,
    "Authority (PEM) of the certificate of a rediss store, and of the global store. Absent: those of Node.js.",
  ),
  "store-cert": setting(accept.file, "Client certificate (PEM) for a rediss store; needs --store-key."),
  "store-key": setting(accept.file, "Private key (PEM) of --store-cert."),
  "global-store": setting(
    accept.globalStore,
    "The Redis that all regions share: rules with scope global count there, through units that each region holds.",
  ),
  "global-store-deadline": setting(
    accept.duration,
    "How long the global store may take before a rule's onStoreFailure answers: a round trip there, and room.",
    "1s",
  ),
  instances: setting(
    accept.wholeNumber({ least: 1, most: 100_000 }),
    "How many instances share the limits: under onStoreFailure local each admits its part. Absent: counted through Redis. Multiplied by workers.",
  ),
  "max-waiting": setting(
    accept.wholeNumber({ least: 0, most: 1_000_000 }),
    "How many requests may wait at once, in a process, for turns under rules with maxWait; beyond it they are refused.",
    "10000",
  ),
  database: setting(
    accept.database,
    "Where rules live: sqlite:PATH or postgres://…. Default: sluice.db in the data folder.",
  ),
  rules: setting(
    accept.file,
    "A rule document (YAML or JSON), read-only and reloaded on change, instead of a database.",
  ),
  "data-folder": setting(accept.text("DIR", "a folder"), "Where tokens, rules and snapshots are kept.", ".sluice"),
  "envoy-config": setting(
    accept.folder,
    "A folder of envoyproxy/ratelimit's YAML files, reloaded on change; sub-folders too.",
  ),
  "envoy-merge-domains": setting(
    accept.yesNo,
    "Let several files of --envoy-config, or resources of --envoy-xds, configure the same domain.",
    "false",
  ),
  "envoy-xds": setting(
    accept.hostAndPort,
    "A control plane that sends limits by xDS (Envoy Gateway), instead of --envoy-config.",
  ),
  "envoy-xds-node-id": setting(accept.text("ID", "a name"), "The node id of the xDS subscription.", "default"),
  "envoy-xds-node-metadata": setting(accept.pairs, "The node metadata of the xDS subscription."),
  "envoy-xds-headers": secret(accept.grpcMetadata, "Metadata that is sent with the stream, such as a token."),
  "envoy-xds-tls": setting(accept.yesNo, "Speak TLS with the control plane; implied by the settings below.", "false"),
  "envoy-xds-ca": setting(accept.file, "Authority (PEM) of the control plane's certificate. Absent: those of Node.js."),
  "envoy-xds-cert": setting(accept.file, "Client certificate (PEM) for the control plane; needs --envoy-xds-key."),
  "envoy-xds-key": setting(accept.file, "Private key (PEM) of --envoy-xds-cert."),
  "envoy-xds-server-name": setting(
    accept.text("NAME", "a name"),
    "The name in the control plane's certificate, if it is not the host's.",
  ),
  "envoy-headers": setting(
    accept.responseFields,
    "Fields of responses to Envoy: standard (RateLimit, RateLimit-Policy, Retry-After), off, or three names for limit, remaining and reset.",
    "standard",
  ),
  "envoy-body": setting(accept.yesNo, "Give Envoy a problem body for refused requests.", "true"),
  "envoy-dynamic-metadata": setting(
    accept.yesNo,
    "Give Envoy the domain, the descriptors and the metadata of those that passed as dynamic metadata.",
    "false",
  ),
  "envoy-shadow-mode": setting(
    accept.yesNo,
    "Refuse no request of Envoy's; what would be refused is counted.",
    "false",
  ),
  "envoy-quota-mode": setting(
    accept.yesNo,
    "Treat every limit of Envoy's as a quota: a request is refused only if all of its limits are used up.",
    "false",
  ),
  "envoy-store-failure": setting(
    accept.oneOf(["policy", "error"]),
    "While the store is away: policy (each limit's onStoreFailure answers), or error, so that Envoy's failure_mode_deny decides.",
    "policy",
  ),
  "metrics-address": setting(
    accept.hostAndPort,
    "A second address that answers GET /metrics and nothing else. Absent: only --port does.",
  ),
  "envoy-count-refused": setting(
    accept.yesNo,
    "Count hits of requests that Envoy's limits refuse, too, as envoyproxy/ratelimit does; count_refused of a limit in a file wins.",
    "false",
  ),
  "grpc-transport": setting(
    accept.oneOf(["own", "grpc-js"]),
    "What carries gRPC calls: own (HTTP/2 framing made for short calls), or grpc-js (slower, the common library).",
    "own",
  ),
  "grpc-streams": setting(
    accept.wholeNumber({ least: 1, most: 1_000 }),
    "Calls at once that a gRPC connection is told to make (own transport). Beyond them Envoy opens another: few spread its calls over --workers.",
    "1000",
  ),
  "envoy-rlqs": setting(
    accept.yesNo,
    "Serve Envoy's rate limit quota service (RLQS) on the gRPC port, for rules with a prefetch of 3s or more.",
    "true",
  ),
  "envoy-metrics": setting(
    accept.yesNo,
    "Count hits of Envoy's limits also under the names of envoyproxy/ratelimit, for its dashboards.",
    "false",
  ),
  "envoy-near-limit-ratio": setting(
    accept.share,
    "From which share of a limit on --envoy-metrics calls it near.",
    "0.8",
  ),
  attributes: setting(accept.file, "Which header, cookie, claim or address becomes which attribute; trusted proxies."),
  upstream: setting(accept.upstream, "Where the reverse proxy passes requests on to. Absent: no proxy."),
  "upstream-headers": secret(
    accept.httpHeaders,
    "With --upstream: headers of every request to it, in place of the client's: authorization=Bearer …, so that clients need no key of a vendor.",
  ),
  "upstream-timeout": setting(
    accept.duration,
    "With --upstream: how long it may send nothing, before its answer or within, until the proxy gives up (504). Absent: 2m, with --usage 10m.",
  ),
  "proxy-port": setting(accept.port, "Port of the reverse proxy, with --upstream; 0 picks a free one.", "8000"),
  usage: setting(
    accept.usage,
    "Makes the proxy an LLM gateway: openai, anthropic, or the JSON pointer of the token counts in other answers. See llm-gateway.md.",
  ),
  "usage-body-limit": setting(
    accept.memory,
    "With --usage: the largest body of a call, which is held until it is decided; eight times as much for all together.",
    "32MiB",
  ),
  "usage-drain": setting(
    accept.durationOrNone,
    "With --usage: how long the answer to a client that has left is read on for the usage that ends it; 0 cuts the vendor's call at once.",
    "1s",
  ),
  "usage-headers": setting(
    accept.oneOf(["off", "openai", "anthropic"]),
    "With --usage: send x-ratelimit-limit-tokens and the like, or anthropic-ratelimit-tokens-limit, by each rule's unit.",
    "off",
  ),
  "usage-prices": setting(
    accept.file,
    "With --usage: dollars per million tokens, by model, for rules that count money.",
  ),
  "usage-stream-options": setting(
    accept.yesNo,
    "With --usage openai: ask for stream_options.include_usage where a client does not, and take the extra event out again.",
    "true",
  ),
  "usage-tokenizer": setting(
    accept.file,
    "With --usage: a module whose countTokens({model, body}) counts a prompt. Absent: a token for four bytes of text.",
  ),
  "legacy-headers": setting(accept.yesNo, "Send X-RateLimit-* beside RateLimit and RateLimit-Policy.", "false"),
  "admin-token": secret(accept.token, "A token with the admin role. Absent: one is made once, in the data folder."),
  "api-token": secret(accept.token, "The token that the data plane requires. Absent: it is open."),
  "allowed-hosts": setting(
    accept.hostNames,
    "Names under which browsers reach the service, beside addresses and localhost; others are refused (DNS rebinding). Absent: on loopback none, elsewhere any.",
  ),
  "alert-webhook": secret(
    accept.webhooks,
    "Where alerts are sent to: https://…, or slack+https://… for Slack's format; several with commas between.",
  ),
  "alert-secret": secret(
    accept.token,
    "Signs webhook messages (HMAC-SHA256), so that receivers can verify the sender.",
  ),
  "alert-allow-private": setting(
    accept.yesNo,
    "Let webhooks be at private, loopback or link-local addresses.",
    "false",
  ),
  "smtp-url": secret(
    accept.smtpUrl,
    "The mail server for alerts by mail: smtp://USER:PASSWORD@HOST:587 (STARTTLS), or smtps://… (TLS); needs --smtp-from.",
  ),
  "smtp-from": setting(accept.text("ADDRESS", "a mail address"), "The sender of alerts by mail."),
  "public-url": setting(
    accept.publicUrl,
    "Where browsers reach the console, such as https://limits.example: alerts link to it, and single sign-on comes back to it.",
  ),
  "oidc-issuer": setting(
    accept.httpUrl,
    "Single sign-on by OpenID Connect: the provider; needs --oidc-client-id and --public-url.",
  ),
  "oidc-client-id": setting(accept.text("ID", "a client id"), "The client that the provider knows this service as."),
  "oidc-client-secret": secret(
    accept.text("SECRET", "a secret"),
    "Its secret. Absent: a public client, with PKCE alone.",
  ),
  "oidc-scopes": setting(accept.text("SCOPES", "scopes"), "What is asked of the provider.", "openid profile email"),
  "oidc-role-claim": setting(
    accept.text("NAME", "a claim"),
    "The claim of the ID token that holds roles; dots lead into objects, as in realm_access.roles.",
    "roles",
  ),
  "oidc-roles": setting(
    accept.pairs,
    "Which value of the claim is which role, VALUE=ROLE with commas between. A person without one is refused.",
    "sluice-viewer=viewer,sluice-editor=editor,sluice-admin=admin",
  ),
  "tls-cert": setting(
    accept.file,
    "Certificate chain (PEM) for HTTP, gRPC and the proxy; needs --tls-key. Renewed files are read again.",
  ),
  "tls-key": setting(accept.file, "Private key (PEM) of --tls-cert."),
  "tls-client-ca": setting(
    accept.file,
    "Authority (PEM) of client certificates: HTTP, gRPC and the proxy then refuse clients without one.",
  ),
  "grpc-tls-cert": setting(accept.file, "Certificate chain (PEM) for gRPC alone, instead of --tls-cert."),
  "grpc-tls-key": setting(accept.file, "Private key (PEM) of --grpc-tls-cert."),
  "grpc-tls-client-ca": setting(accept.file, "Authority (PEM) of client certificates, for gRPC alone."),
  "grpc-tls-client-san": setting(
    accept.text("NAME", "a name"),
    "The subject alternative name that a client certificate must have, for gRPC.",
  ),
  region: setting(
    accept.text("NAME", "a name"),
    "The attribute region of requests that name none; beside --global-store, the name of this region.",
  ),
  "drain-delay": setting(
    accept.durationOrNone,
    "How long an instance that got SIGTERM is not ready but still serves, so that load balancers turn away first. Not after SIGINT.",
    "3s",
  ),
  "drain-timeout": setting(accept.duration, "How long requests under way may take to end after SIGTERM.", "10s"),
  "log-level": setting(
    accept.oneOf(["debug", "info", "warn", "error", "silent"]),
    "Least level that is logged.",
    "info",
  ),
  monitoring: setting(
    accept.oneOf(["on", "off"]),
    "Whether traffic is counted: for the dashboard, alerts, `sluice top` and the metrics of requests and checks.",
    "on",
  ),
  "refusal-log": setting(
    accept.oneOf(["shown", "hidden", "off"]),
    "A sample of refusals with their attributes, kept for six hours for the page of a key. hidden: names of attributes without values.",
    "shown",
  ),
  record: setting(
    accept.text("DIR", "a folder"),
    "Record decisions with their attributes in this folder, for `sluice simulate`. Attributes may be personal data: see --record-hash.",
  ),
  "record-limit": setting(
    accept.memory,
    "With --record: how much its folder may hold; the oldest segments go first.",
    "1GiB",
  ),
  "record-age": setting(accept.longDuration, "With --record: how long segments are kept.", "7d"),
  "record-hash": setting(
    accept.attributeNames,
    "With --record: attributes whose values are hashed, such as user,ip. Request ids then are too.",
  ),
  "record-key": secret(
    accept.token,
    "The key of --record-hash. Absent: another one at each start, so that recordings cannot be joined by value.",
  ),
  otlp: setting(accept.httpUrl, "Where metrics and traces are pushed to (OTLP over HTTP)."),
  "trace-share": setting(
    accept.share,
    "With --otlp: the share of requests that are traced, of those whose caller did not decide (traceparent).",
    "0.01",
  ),
} as const satisfies Record<string, SettingSpec<unknown>>;

export type SettingName = keyof typeof settingSpecs;

type ValueOf<S> = S extends SettingSpec<infer T> ? T : never;
export type Settings = { readonly [Name in SettingName]: ValueOf<(typeof settingSpecs)[Name]> };

export const settingNames = Object.keys(settingSpecs) as SettingName[];

export function variableOf(name: string): string {
  return `SLUICE_${name.toUpperCase().replaceAll("-", "_")}`;
}
