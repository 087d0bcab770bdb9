/**
 * The xDS messages that carry limits: requests and responses of the aggregated discovery service, with `RateLimitConfig` resources.
 * In and out: bytes. Resources are converted to the shape of the YAML files, so that the same code checks both.
 */
import { loadProto } from "../load-proto.js";
import { plainStruct, type StructMessage } from "../struct-message.js";

export const CONFIG_TYPE = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";
export const STREAM_PATH = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

interface DiscoveryRequest {
  readonly versionInfo: string;
  readonly node: { readonly id: string; readonly metadata?: unknown; readonly userAgentName: string };
  readonly typeUrl: string;
  readonly responseNonce: string;
  readonly errorDetail?: { readonly code: number; readonly message: string };
}

export interface DiscoveryResponse {
  readonly versionInfo: string;
  readonly typeUrl: string;
  readonly nonce: string;
  /** `google.protobuf.Any`; protobufjs keeps the published (snake case) names of its built-in definition. */
  readonly resources: readonly { readonly type_url: string; readonly value: Uint8Array }[];
}

interface Resource {
  readonly name: string;
  /** In the shape of a YAML file. */
  readonly content: unknown;
}

export interface XdsCodec {
  writeRequest(request: DiscoveryRequest): Buffer;
  /** Undefined if the bytes are not a response. */
  readResponse(bytes: Buffer): DiscoveryResponse | undefined;
}

export function xdsCodec(): XdsCodec {
  const root = loadProto(["envoy/service/discovery/v3/discovery.proto"]);
  const request = root.lookupType("envoy.service.discovery.v3.DiscoveryRequest");
  const response = root.lookupType("envoy.service.discovery.v3.DiscoveryResponse");
  return {
    writeRequest: (message) => request.encode(request.fromObject(message)).finish() as Buffer,
    readResponse(bytes) {
      try {
        return response.decode(bytes) as unknown as DiscoveryResponse;
      } catch {
        return undefined;
      }
    },
  };
}

/** Decodes a resource; throws if it has another type or is malformed. */
export function resourceReader(): (any: DiscoveryResponse["resources"][number]) => Resource {
  const root = loadProto(["ratelimit/config/ratelimit/v3/rls_conf.proto"]);
  const config = root.lookupType("ratelimit.config.ratelimit.v3.RateLimitConfig");
  return ({ type_url: typeUrl, value }) => {
    if (typeUrl !== CONFIG_TYPE)
      throw new Error(`expected resources of type ${CONFIG_TYPE}, got ${JSON.stringify(typeUrl)}`);
    const read = config.toObject(config.decode(value), { enums: String, longs: Number }) as ConfigMessage;
    const { name = "", domain = "", descriptors = [] } = read;
    return { name, content: { domain, descriptors: descriptors.map(fileDescriptor) } };
  };
}

interface ConfigMessage {
  readonly name?: string;
  readonly domain?: string;
  readonly descriptors?: readonly DescriptorMessage[];
}

interface DescriptorMessage {
  readonly key?: string;
  readonly value?: string;
  readonly rateLimit?: {
    readonly unit?: string | number;
    readonly requestsPerUnit?: number;
    readonly unlimited?: boolean;
    readonly name?: string;
    readonly replaces?: readonly { readonly name?: string }[];
  };
  readonly descriptors?: readonly DescriptorMessage[];
  readonly shadowMode?: boolean;
  readonly detailedMetric?: boolean;
  readonly quotaMode?: boolean;
  readonly metadata?: StructMessage;
}

function fileDescriptor(descriptor: DescriptorMessage): Record<string, unknown> {
  const { key, value, rateLimit, descriptors, shadowMode, detailedMetric, quotaMode, metadata } = descriptor;
  return {
    key,
    value,
    rate_limit: rateLimit && fileLimit(rateLimit),
    descriptors: descriptors?.map(fileDescriptor),
    shadow_mode: shadowMode,
    detailed_metric: detailedMetric,
    quota_mode: quotaMode,
    metadata: metadata && plainStruct(metadata),
  };
}

function fileLimit({ unit, requestsPerUnit, unlimited, name, replaces }: NonNullable<DescriptorMessage["rateLimit"]>) {
  return {
    // UNKNOWN means that the unit is absent.
    unit: unit === "UNKNOWN" ? undefined : unit,
    requests_per_unit: requestsPerUnit,
    unlimited,
    name,
    replaces: replaces?.map((one) => ({ name: one.name })),
  };
}
