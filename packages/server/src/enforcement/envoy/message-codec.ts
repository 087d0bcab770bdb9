/**
 * The methods of `ShouldRateLimit` with their messages read and written by hand, mostly; the others by protobufjs itself. The codec of proto-loader copies each message into a
 * plain object and back, field by field, which costs several times what the decision does; ours are plain already.
 * A response that was spelled before (`plain-requests.ts`) is passed on as it is.
 */
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import type { Type } from "protobufjs";
import { decodePlain } from "./decode-request.js";
import { encodeResponse } from "./encode-response.js";
import { loadProto } from "./load-proto.js";
import type { RateLimitResponse } from "./rate-limit-messages.js";

export const SERVICE_NAME = "envoy.service.ratelimit.v3.RateLimitService";

/** A message that cannot be read. grpc-js would answer it with INTERNAL, which is what monitors page people for. */
export const MALFORMED = Symbol("malformed");

export function rateLimitService(): ServiceDefinition {
  const root = loadProto(["envoy/service/ratelimit/v3/rls.proto"]);
  const request = root.lookupType("envoy.service.ratelimit.v3.RateLimitRequest");
  const response = root.lookupType("envoy.service.ratelimit.v3.RateLimitResponse");
  const method = methodOf<RateLimitResponse>(`/${SERVICE_NAME}/ShouldRateLimit`, { request, response });
  const requestDeserialize = (bytes: Buffer): unknown => decodePlain(bytes) ?? method.requestDeserialize(bytes);
  const responseSerialize = (message: RateLimitResponse | Buffer): Buffer => {
    if (Buffer.isBuffer(message)) return message;
    return message.dynamicMetadata === undefined ? encodeResponse(message) : method.responseSerialize(message);
  };
  return { ShouldRateLimit: { ...method, requestDeserialize, responseSerialize } };
}

/** The server's side of a method: requests are read, responses written. */
export function methodOf<Response extends object>(
  path: string,
  { request, response, responseStream = false }: { request: Type; response: Type; responseStream?: boolean },
): MethodDefinition<unknown, Response> {
  return {
    path,
    requestStream: false,
    responseStream,
    requestSerialize: (message) => request.encode(message as object).finish() as Buffer,
    requestDeserialize(bytes): unknown {
      try {
        // Absent fields are there by the prototype, with their defaults.
        return request.decode(bytes);
      } catch {
        return MALFORMED;
      }
    },
    responseSerialize: (message) => response.encode(message).finish() as Buffer,
    responseDeserialize: (bytes) => response.decode(bytes) as unknown as Response,
  };
}
