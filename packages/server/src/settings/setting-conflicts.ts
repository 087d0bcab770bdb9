/** Settings that are valid on their own but conflict. In: accepted settings. Out: mistakes. Pure. */
import { regionName } from "./accepted-settings.js";
import type { Settings } from "./setting-specs.js";

const certificatePairs = [
  ["tls-cert", "tls-key"],
  ["smtp-url", "smtp-from"],
  ["grpc-tls-cert", "grpc-tls-key"],
  ["envoy-xds-cert", "envoy-xds-key"],
  ["store-cert", "store-key"],
] as const;

/** One sentence per conflict. */
export function conflicts(settings: Settings): string[] {
  const found: string[] = [];
  if (settings.workers > 1 && settings.store === "memory") {
    found.push(
      `workers: expected 1 with the memory store, got ${settings.workers}: each process would count for itself and the limits would ` +
        `be ${settings.workers} times what the rules say. Use --store redis://… to share counters`,
    );
  }
  if (settings["global-store"] !== undefined && regionName.parse(settings.region ?? "") === undefined)
    found.push(
      `region: expected ${regionName.expected}, beside global-store, got ${JSON.stringify(settings.region) ?? "nothing"}`,
    );
  for (const [cert, key] of certificatePairs) {
    if ((settings[cert] === undefined) !== (settings[key] === undefined))
      found.push(`${cert}, ${key}: expected both or neither, got one`);
  }
  const { "oidc-issuer": issuer } = settings;
  if (issuer !== undefined) {
    if (settings["oidc-client-id"] === undefined || settings["public-url"] === undefined)
      found.push("oidc-issuer: expected --oidc-client-id and --public-url beside it");
    const { protocol, hostname } = new URL(issuer);
    if (protocol === "http:" && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname))
      found.push("oidc-issuer: expected https:// for a provider that is not on this machine");
  }
  for (const role of Object.values(settings["oidc-roles"])) {
    if (!["viewer", "editor", "admin"].includes(role))
      found.push(`oidc-roles: expected viewer, editor or admin behind =, got ${JSON.stringify(role)}`);
  }
  if (settings["tls-client-ca"] !== undefined && settings["tls-cert"] === undefined) {
    found.push("tls-client-ca: expected --tls-cert beside it");
  }
  const grpcClients = settings["grpc-tls-client-ca"] ?? settings["tls-client-ca"];
  if (grpcClients !== undefined && (settings["grpc-tls-cert"] ?? settings["tls-cert"]) === undefined) {
    found.push("grpc-tls-client-ca: expected --grpc-tls-cert or --tls-cert beside it");
  }
  if (settings["grpc-tls-client-san"] !== undefined && grpcClients === undefined) {
    found.push(
      "grpc-tls-client-san: expected --grpc-tls-client-ca beside it: the name of an unverified certificate says nothing",
    );
  }
  if (settings["envoy-config"] !== undefined && settings["envoy-xds"] !== undefined) {
    found.push(
      "envoy-config, envoy-xds: expected one of them, got both; limits come from files or from a control plane",
    );
  }
  if (settings.record === undefined && (settings["record-hash"] ?? settings["record-key"]) !== undefined) {
    found.push("record-hash, record-key: expected --record beside them");
  }
  if (settings.usage !== undefined && settings.upstream === undefined) {
    found.push("usage: expected --upstream beside it: usage is read from answers that pass through the proxy");
  }
  if (settings.usage === undefined && (settings["usage-prices"] ?? settings["usage-tokenizer"]) !== undefined) {
    found.push("usage-prices, usage-tokenizer: expected --usage beside them");
  }
  if (settings.rules !== undefined && settings.database !== undefined) {
    found.push("rules, database: expected one of them, got both; rules come from a file or from a database");
  }
  return found;
}
