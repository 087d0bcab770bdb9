/**
 * Derives the attributes of plain HTTP requests, for forward-auth and the proxy.
 * In: the request as received. Out: `method`, `path`, `host`, `ip`, and whatever the mapping file adds.
 * Clients cannot spoof their address: forwarded addresses count only from trusted proxies.
 */
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { type Attributes, SluiceError } from "sluice";
import { clientAddresses } from "sluice/http";
import type { MaybePromise } from "sluice/internal";
import { cookieValue } from "../../http/cookies.js";
import { ownField, setOwn } from "../../own-fields.js";
import { bytesOf, ownText } from "../../own-text.js";
import { judgedTargets, normalHost } from "./judged-target.js";
import { type Mapping, readMapping, type Source } from "./mapping-file.js";
import { compileTemplate, matchTemplate } from "./path-template.js";
import { type Claims, type ClaimsOf, verifiedClaims } from "./verified-claims.js";

export interface HttpRequestFacts {
  readonly method: string;
  /** The request target as received. */
  readonly target: string;
  readonly host: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** As received: name, value, name, value. */
  readonly rawHeaders: readonly string[];
  /** The remote address of the connection. */
  readonly peer: string | undefined;
  /** For replays: shared by requests with the same target, so that each is normalised once. */
  readonly memo?: { path: string | undefined } | undefined;
}

/** Synchronous, unless a token must be verified. */
type AttributesOf = (facts: HttpRequestFacts) => MaybePromise<Attributes>;

export interface RequestAttributes {
  /** Throws or rejects with `invalid-request` for an ambiguous request, which two servers could read differently. */
  readonly attributesOf: AttributesOf;
  /** The address against which failed authentication is counted; for IPv6 the /64 network. */
  readonly networkOf: (facts: Pick<HttpRequestFacts, "peer" | "headers">) => string;
  /** The path as seen by a server that does not resolve `..`; absent if the target contains none. */
  readonly unresolvedPathOf: (target: string) => string | undefined;
  /** The normalised target, which the proxy forwards and the decision was based on. Throws `invalid-request` if there is none. */
  readonly normalTarget: (target: string) => string;
  /** Headers that attributes are read from, in lower case. */
  readonly headerNames: ReadonlySet<string>;
  /** All headers that attributes depend on, in lower case, including Cookie and the forwarded address. */
  readonly readHeaders: ReadonlySet<string>;
  /** The subset that only trusted peers may send, in lower case. */
  readonly trustedHeaderNames: ReadonlySet<string>;
  /** Whether this peer's X-Forwarded-For is trusted. */
  readonly trusts: (peer: string) => boolean;
}

type Value = string | number | boolean;
type ApiKey = Readonly<Record<string, Value>>;

/** Values that several sources need; computed once. */
interface Known {
  readonly facts: HttpRequestFacts;
  readonly path: string;
  readonly ip: string;
  readonly isTrusted: boolean;
  readonly claims: Claims | undefined;
  readonly apiKey: ApiKey | undefined;
}

type Read = (known: Known) => Value | undefined;

/** Longer values are replaced by their digest: truncated, two values could become one; dropped, their rules would not apply. */
const MOST_VALUE_LENGTH = 1_024;

export function requestAttributes(options: {
  file?: string | undefined;
  region?: string | undefined;
  /** For replays, where clients, targets and hosts repeat: caches what was derived from each. */
  remembers?: boolean | undefined;
}): RequestAttributes {
  const { mapping, besideFile } =
    options.file === undefined ? { mapping: {} as Mapping, besideFile: String } : readMapping(options.file);
  const addressOf = clientAddresses({
    ...(mapping.trustedProxies !== undefined && { trustProxy: mapping.trustedProxies }),
    ...(mapping.ipv6Prefix !== undefined && { ipv6Prefix: mapping.ipv6Prefix }),
  });
  const networkOf = clientAddresses({
    ...(mapping.trustedProxies !== undefined && { trustProxy: mapping.trustedProxies }),
    ipv6Prefix: 64,
  });
  const reads = Object.entries(mapping.attributes ?? {}).map(([name, source]) => ({
    name,
    read: firstOf((Array.isArray(source) ? source : [source]).map(reader)),
  }));
  const claimsOf =
    mapping.jwt === undefined ? undefined : claimsReader(mapping.jwt, verifiedClaims(mapping.jwt, besideFile));
  const apiKeyOf = mapping.apiKeys === undefined ? undefined : apiKeyReader(mapping.apiKeys);
  const targets = judgedTargets(mapping.paths ?? {});
  const headerNames = headerNamesOf(mapping);
  const trustedHeaderNames = trustedHeadersOf(mapping);
  const trusts = trustOf(mapping.trustedProxies);

  // Targets that differ only in the query share one interned path string, which makes later map look-ups cheap.
  const samePath = remembering((path: string) => path);
  const pathOf =
    options.remembers === true ? remembering((target: string) => samePath(targets.pathOf(target))) : targets.pathOf;
  const hostOf = options.remembers === true ? remembering(normalHost) : normalHost;

  const attributesOf: AttributesOf = (facts) => {
    refuseRepeated(facts.rawHeaders, headerNames);
    const path = facts.memo?.path ?? pathOf(facts.target);
    if (facts.memo !== undefined) facts.memo.path = path;
    const ip = addressOf({ peer: facts.peer, forwarded: facts.headers["x-forwarded-for"] });
    if (claimsOf === undefined) return attributesFrom({ facts, path, ip, claims: undefined });
    return claimsOf(facts.headers).then((claims) => attributesFrom({ facts, path, ip, claims }));
  };
  const attributesFrom = ({ facts, path, ip, claims }: Omit<Known, "isTrusted" | "apiKey">): Attributes => {
    const attributes: Record<string, Value | undefined> = {
      method: facts.method,
      path,
      host: hostOf(facts.host),
      ip,
    };
    if (options.region !== undefined) attributes.region = options.region;
    if (reads.length === 0) return attributes;
    const isTrusted = trustedHeaderNames.size > 0 && trusts(facts.peer ?? "");
    const known: Known = { facts, path, ip, isTrusted, claims, apiKey: apiKeyOf?.(facts.headers) };
    for (const { name, read } of reads) {
      const value = read(known);
      if (value !== undefined) setOwn(attributes, name, bounded(value));
    }
    return attributes;
  };
  return {
    attributesOf,
    networkOf: ({ peer, headers }) => networkOf({ peer, forwarded: headers["x-forwarded-for"] }),
    unresolvedPathOf: targets.unresolvedPathOf,
    normalTarget: targets.normalise,
    headerNames,
    readHeaders: readHeadersOf(mapping, headerNames),
    trustedHeaderNames,
    trusts,
  };
}

const MOST_REMEMBERED = 16_384;

/** Caches results, but not exceptions. */
function remembering<K extends string | undefined, V>(read: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>();
  return (key) => {
    const value = known.get(key);
    if (value !== undefined) return value;
    // A target is a substring of its log line, and would keep the whole line in memory.
    const own = (key === undefined ? key : ownText(key)) as K;
    const made = read(own);
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(own, made);
    return made;
  };
}

function headerNamesOf({ attributes = {}, jwt, apiKeys }: Mapping): Set<string> {
  const sources = Object.values(attributes).flat();
  const names = sources.flatMap((source) => ("header" in source ? [source.header] : []));
  if (jwt !== undefined && jwt.cookie === undefined) names.push(jwt.header ?? DEFAULT_JWT_HEADER);
  if (apiKeys !== undefined) names.push(apiKeys.header ?? DEFAULT_KEY_HEADER);
  return new Set(names.map((name) => name.toLowerCase()));
}

function readHeadersOf({ attributes = {}, jwt, trustedProxies }: Mapping, names: Iterable<string>): Set<string> {
  const all = new Set(names);
  if (trustedProxies !== undefined) all.add("x-forwarded-for");
  const hasCookie = Object.values(attributes)
    .flat()
    .some((source) => "cookie" in source);
  if (hasCookie || jwt?.cookie !== undefined) all.add("cookie");
  return all;
}

/** A header that some attribute accepts from anyone stays readable: nothing that needs trust depends on it. */
function trustedHeadersOf({ attributes = {} }: Mapping): Set<string> {
  const headers = Object.values(attributes)
    .flat()
    .flatMap((source) => ("header" in source ? [source] : []));
  const open = new Set(headers.filter(({ trusted }) => trusted !== true).map(({ header }) => header.toLowerCase()));
  const trusted = headers.filter((source) => source.trusted === true).map(({ header }) => header.toLowerCase());
  return new Set(trusted.filter((name) => !open.has(name)));
}

const DEFAULT_JWT_HEADER = "authorization";
const DEFAULT_KEY_HEADER = "x-api-key";

/** Of repeated fields, one server uses the first, another the last, a third joins them: no value is safe to count by. */
function refuseRepeated(rawHeaders: readonly string[], names: ReadonlySet<string>): void {
  if (names.size === 0) return;
  const seen = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (!names.has(name)) continue;
    if (seen.has(name)) throw new SluiceError("invalid-request", `${name}: expected one such header, got several`);
    seen.add(name);
  }
}

function bounded(value: Value): Value {
  if (typeof value !== "string" || value.length <= MOST_VALUE_LENGTH) return value;
  return `sha256:${createHash("sha256").update(bytesOf(value)).digest("hex")}`;
}

/** Uses the library's own address parser: a peer is trusted if the address that it forwards is believed. */
function trustOf(trustedProxies: Mapping["trustedProxies"]): (peer: string) => boolean {
  if (trustedProxies === undefined) return () => false;
  const addressOf = clientAddresses({ trustProxy: trustedProxies });
  const probe = "192.0.2.1";
  return (peer) => addressOf({ peer, forwarded: probe }) === probe;
}

function firstOf(reads: readonly Read[]): Read {
  return (known) => {
    for (const read of reads) {
      const value = read(known);
      if (value !== undefined && value !== "") return value;
    }
    return undefined;
  };
}

function reader(source: Source): Read {
  if ("header" in source) {
    const name = source.header.toLowerCase();
    if (source.trusted === true) {
      return ({ facts, isTrusted }) => (isTrusted ? headerText(facts.headers, name) : undefined);
    }
    return ({ facts }) => headerText(facts.headers, name);
  }
  if ("cookie" in source) return ({ facts }) => cookieValue(facts.headers.cookie, source.cookie);
  if ("claim" in source) {
    const steps = source.claim.split(".");
    return ({ claims }) => scalar(claims?.[source.claim] ?? steps.reduce<unknown>(step, claims));
  }
  if ("apiKey" in source) return ({ apiKey }) => ownField(apiKey, source.apiKey);
  if ("path" in source) {
    const template = compileTemplate(source.path);
    return ({ path }) => matchTemplate(template, path);
  }
  if ("route" in source) {
    const templates = source.route.map(compileTemplate);
    return ({ path }) => templates.find((template) => matchTemplate(template, path) !== undefined)?.text;
  }
  if ("value" in source) return () => source.value;
  return ({ ip }) => ip;
}

function headerText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = ownField(headers, name);
  return Array.isArray(value) ? value.join(", ") : value;
}

function step(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

function scalar(value: unknown): Value | undefined {
  if (typeof value === "string" || typeof value === "boolean" || Number.isFinite(value)) return value as Value;
  return undefined;
}

function claimsReader(
  { header = DEFAULT_JWT_HEADER, cookie }: NonNullable<Mapping["jwt"]>,
  claimsOf: ClaimsOf,
): (headers: IncomingHttpHeaders) => Promise<Claims | undefined> {
  const name = header.toLowerCase();
  return async (headers) => {
    const text = cookie === undefined ? headerText(headers, name) : cookieValue(headers.cookie, cookie);
    if (text === undefined) return undefined;
    const token = name === "authorization" && cookie === undefined ? bearerToken(text) : text;
    return token === undefined ? undefined : await claimsOf(token);
  };
}

function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}

/** Looks keys up by digest: the file holds no keys, and look-up timing reveals nothing. */
function apiKeyReader({
  header = DEFAULT_KEY_HEADER,
  keys,
}: NonNullable<Mapping["apiKeys"]>): (headers: IncomingHttpHeaders) => ApiKey | undefined {
  const name = header.toLowerCase();
  const byDigest = new Map<string, ApiKey>(keys.map(({ sha256, ...fields }) => [sha256, fields as ApiKey]));
  return (headers) => {
    const text = headerText(headers, name);
    const given = name === "authorization" ? bearerToken(text) : text;
    return given === undefined ? undefined : byDigest.get(createHash("sha256").update(given).digest("hex"));
  };
}
