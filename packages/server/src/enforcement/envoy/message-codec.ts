/**
 * The codec of `ShouldRateLimit`: messages are mostly encoded and decoded by hand, the rest by protobufjs directly. proto-loader's codec
 * copies each message into a plain object and back, which costs several times the decision; ours are plain objects already.
 * A response that was already encoded (`plain-requests.ts`) is passed through.
 */
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import type { Root, Type } from "protobufjs";
import { decodePlain } from "./decode-request.js";
import { encodeResponse } from "./encode-response.js";
import { loadProto } from "./load-proto.js";
import { MOST_DESCRIPTORS, MOST_ENTRIES } from "./message-bounds.js";
import type { RateLimitResponse } from "./rate-limit-messages.js";

export const SERVICE_NAME = "envoy.service.ratelimit.v3.RateLimitService";

/** A message that cannot be decoded. grpc-js would answer INTERNAL, which monitors page people for. */
export const MALFORMED = Symbol("malformed");

export function rateLimitService(): ServiceDefinition {
  const root = loadProto(["envoy/service/ratelimit/v3/rls.proto"]);
  const request = root.lookupType("envoy.service.ratelimit.v3.RateLimitRequest");
  const response = root.lookupType("envoy.service.ratelimit.v3.RateLimitResponse");
  const method = methodOf<RateLimitResponse>(`/${SERVICE_NAME}/ShouldRateLimit`, { request, response });
  const begin = boundDecoding(root);
  const requestDeserialize = (bytes: Buffer): unknown => {
    const plain = decodePlain(bytes);
    if (plain !== undefined) return plain;
    begin();
    return method.requestDeserialize(bytes);
  };
  const responseSerialize = (message: RateLimitResponse | Buffer): Buffer => {
    if (Buffer.isBuffer(message)) return message;
    return message.dynamicMetadata === undefined ? encodeResponse(message) : method.responseSerialize(message);
  };
  return { ShouldRateLimit: { ...method, requestDeserialize, responseSerialize } };
}

/**
 * A megabyte holds half a million descriptors of two bytes. Makes protobufjs stop at the first descriptor or entry beyond the bound, as
 * `decodePlain` does; the request is then refused for it. Returns a function to call before each request.
 */
function boundDecoding(root: Root): () => void {
  let descriptors = 0;
  let entries = 0;
  const bound = (name: string, isBeyond: () => boolean): void => {
    const type = root.lookupType(`envoy.extensions.common.ratelimit.v3.${name}`).setup();
    const { decode } = type;
    type.decode = (...args: Parameters<Type["decode"]>) => {
      const [reader] = args;
      const message = decode.apply(type, args);
      // Ends the enclosing messages too.
      if (isBeyond() && "pos" in reader) reader.pos = reader.len;
      return message;
    };
  };
  bound("RateLimitDescriptor.Entry", () => ++entries > MOST_ENTRIES);
  bound("RateLimitDescriptor", () => {
    const hadMore = entries > MOST_ENTRIES;
    entries = 0;
    return ++descriptors > MOST_DESCRIPTORS || hadMore;
  });
  return () => {
    descriptors = 0;
    entries = 0;
  };
}

/** The server side of a method: decodes requests, encodes responses. */
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
        // Absent fields have their defaults through the prototype.
        return request.decode(bytes);
      } catch {
        return MALFORMED;
      }
    },
    responseSerialize: (message) => response.encode(message).finish() as Buffer,
    responseDeserialize: (bytes) => response.decode(bytes) as unknown as Response,
  };
}
