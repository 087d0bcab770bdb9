/** A gRPC client of Envoy's rate limit service, as Envoy would be one, and the wire by hand. */
import { type ChannelCredentials, Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { SERVICE_NAME } from "../../packages/server/src/enforcement/envoy/message-codec.js";
import { protoFolder } from "../../packages/server/src/own-package.js";
import type { Json } from "./running-service.js";

export interface EnvoyClient {
  /** Fields in camel case; enums as numbers unless named. */
  shouldRateLimit(request: Json): Promise<Json>;
  /** Any unary method with any bytes. */
  callRaw(path: string, bytes: Buffer): Promise<Buffer>;
  close(): void;
}

export function connectEnvoy(address: string, secure: ChannelCredentials = credentials.createInsecure()): EnvoyClient {
  const client = new Client(address, secure);
  const protos = { includeDirs: [protoFolder], longs: String, defaults: true, arrays: true };
  const service = loadSync("envoy/service/ratelimit/v3/rls.proto", protos)[SERVICE_NAME] as Json;
  const { path, requestSerialize, responseDeserialize } = service.ShouldRateLimit;
  const unary = <Out>(method: string, serialize: (value: Json) => Buffer, read: (bytes: Buffer) => Out, value: Json) =>
    new Promise<Out>((resolve, reject) => {
      // Only ends what hangs: thousands of calls at once may take long on a busy machine.
      const deadline = Date.now() + 60_000;
      client.makeUnaryRequest(
        method,
        serialize,
        read,
        value,
        { deadline } as never,
        (error: ServiceError | null, out?: Out) => (error === null ? resolve(out as Out) : reject(error)),
      );
    });
  return {
    shouldRateLimit: (request) => unary(path, requestSerialize, responseDeserialize, request),
    callRaw: (method, bytes) =>
      unary(
        method,
        (value) => value,
        (out) => out,
        bytes,
      ),
    close: () => client.close(),
  };
}

/** `descriptor({ user: "42" })`: entries in order. */
export function descriptor(entries: Readonly<Record<string, string>>, more: Json = {}): Json {
  return { entries: Object.entries(entries).map(([key, value]) => ({ key, value })), ...more };
}
