/**
 * Reads and writes the messages of `ShouldRateLimit` with protobufjs itself. The codec of proto-loader copies each message into a plain object and
 * back, field by field, which costs several times what the decision does; ours are plain already.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServiceDefinition } from "@grpc/grpc-js";
import protobuf from "protobufjs";
import type { RateLimitResponse } from "./rate-limit-messages.js";

export const protoFolder = fileURLToPath(new URL("../../../proto", import.meta.url));

/** A message that is no RateLimitRequest. grpc-js would answer it with INTERNAL, which is what monitors page people for. */
export const MALFORMED = Symbol("malformed");

export function withLeanCodec(service: ServiceDefinition): ServiceDefinition {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => (protobuf.common.get(target) === null ? join(protoFolder, target) : target);
  root.loadSync("envoy/service/ratelimit/v3/rls.proto");
  const request = root.lookupType("envoy.service.ratelimit.v3.RateLimitRequest");
  const response = root.lookupType("envoy.service.ratelimit.v3.RateLimitResponse");
  const codec = {
    requestDeserialize(bytes: Buffer): unknown {
      try {
        // Absent fields are there by the prototype, with their defaults.
        return request.decode(bytes);
      } catch {
        return MALFORMED;
      }
    },
    responseSerialize: (message: RateLimitResponse): Buffer => response.encode(message).finish() as Buffer,
  };
  return { ...service, ShouldRateLimit: { ...service.ShouldRateLimit, ...codec } } as unknown as ServiceDefinition;
}
