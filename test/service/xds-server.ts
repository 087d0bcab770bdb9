/**
 * A control plane for tests: xDS, state of the world, over grpc-js, with messages declared anew from the published field numbers.
 * It sends what it is told, to nodes that it knows, and keeps every request that it got.
 */
import { type Server as GrpcServer, Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import protobuf from "protobufjs";
import type { Json } from "./running-service.js";

const { root } = protobuf.parse(`
syntax = "proto3";
package test;
message Struct { map<string, Value> fields = 1; }
message Value { oneof kind { double number = 2; string text = 3; bool flag = 4; Struct struct = 5; } }
message Node { string id = 1; Struct metadata = 3; }
message Status { int32 code = 1; string message = 2; }
message Any { string type_url = 1; bytes value = 2; }
message Request { string version_info = 1; Node node = 2; repeated string resource_names = 3; string type_url = 4; string response_nonce = 5; Status error_detail = 6; }
message Response { string version_info = 1; repeated Any resources = 2; string type_url = 4; string nonce = 5; }
message Config { string name = 1; string domain = 2; repeated Descriptor descriptors = 3; }
message Descriptor { string key = 1; string value = 2; Policy rate_limit = 3; repeated Descriptor descriptors = 4; bool shadow_mode = 5; bool detailed_metric = 6; bool quota_mode = 7; Struct metadata = 8; }
message Policy { int32 unit = 1; uint32 requests_per_unit = 2; bool unlimited = 3; string name = 4; repeated Replace replaces = 5; }
message Replace { string name = 1; }
`);
const type = (name: string) => root.lookupType(`test.${name}`);

export const CONFIG_TYPE = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";
export const units = { second: 1, minute: 2, hour: 3, day: 4, month: 5, year: 6, week: 7 } as const;

export interface SentConfig {
  readonly name?: string;
  readonly domain: string;
  readonly descriptors: Json[];
}

export interface XdsTestServer extends AsyncDisposable {
  readonly address: string;
  readonly requests: Json[];
  /** The headers of every stream that was opened. */
  readonly opened: Json[];
  /** Bytes instead of a response, once, to every stream that stands. */
  sendBytes(bytes: Buffer): void;
  /** To every stream that stands and every one that comes. */
  send(version: string, configs: readonly SentConfig[]): void;
  /** Resources, or a whole response, as bytes that are no configuration. */
  sendRaw(version: string, resources: { typeUrl: string; value: Buffer }[], typeUrl?: string): void;
  /** Resolves with the first request, among those to come too, for which it holds. */
  received(holds: (request: Json) => boolean): Promise<Json>;
  /** Ends every stream and stops listening; `restart` listens again on the same port. */
  stop(): Promise<void>;
  restart(): Promise<void>;
}

export async function startXdsServer({
  node = "test-node",
  credentials = ServerCredentials.createInsecure(),
}: {
  node?: string;
  credentials?: ServerCredentials;
} = {}): Promise<XdsTestServer> {
  const requests: Json[] = [];
  const opened: Json[] = [];
  const streams = new Set<ServerDuplexStream<Json, Json>>();
  const waiting: { holds: (request: Json) => boolean; resolve: (request: Json) => void }[] = [];
  let current: Json | undefined;
  let nonce = 0;
  let server: GrpcServer;
  let port = 0;
  const write = (stream: ServerDuplexStream<Json, Json>): void => {
    if (current !== undefined) stream.write({ ...current, nonce: `n${++nonce}` });
  };
  const handle = (stream: ServerDuplexStream<Json, Json>): void => {
    opened.push(stream.metadata.getMap());
    stream.on("data", (request: Json) => {
      requests.push(request);
      for (const one of waiting) if (one.holds(request)) one.resolve(request);
      // As control planes do: a node that is not known is told nothing.
      if (request.node?.id !== node || streams.has(stream)) return;
      streams.add(stream);
      write(stream);
    });
    stream.on("error", () => streams.delete(stream));
    stream.on("end", () => {
      streams.delete(stream);
      stream.end();
    });
  };
  const listen = async (): Promise<void> => {
    server = new Server();
    const codec = (name: string) => ({
      serialize: (message: Json) =>
        message.bytes ?? (type(name).encode(type(name).fromObject(message)).finish() as Buffer),
      deserialize: (bytes: Buffer) => type(name).toObject(type(name).decode(bytes)),
    });
    server.addService(
      {
        StreamAggregatedResources: {
          path: "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
          requestStream: true,
          responseStream: true,
          requestSerialize: codec("Request").serialize,
          requestDeserialize: codec("Request").deserialize,
          responseSerialize: codec("Response").serialize,
          responseDeserialize: codec("Response").deserialize,
        },
      },
      { StreamAggregatedResources: handle },
    );
    port = await new Promise<number>((resolve, reject) =>
      server.bindAsync(`127.0.0.1:${port}`, credentials, (error, bound) => (error ? reject(error) : resolve(bound))),
    );
  };
  await listen();
  const sendAll = (response: Json): void => {
    current = response;
    for (const stream of streams) write(stream);
  };
  const stop = async (): Promise<void> => {
    streams.clear();
    server.forceShutdown();
  };
  return {
    get address() {
      return `127.0.0.1:${port}`;
    },
    requests,
    opened,
    sendBytes(bytes) {
      for (const stream of streams) stream.write({ bytes });
    },
    send: (version, configs) =>
      sendAll({
        versionInfo: version,
        typeUrl: CONFIG_TYPE,
        resources: configs.map((config) => ({
          typeUrl: CONFIG_TYPE,
          value: type("Config")
            .encode(type("Config").fromObject({ name: config.domain, ...config }))
            .finish(),
        })),
      }),
    sendRaw: (version, resources, typeUrl = CONFIG_TYPE) => sendAll({ versionInfo: version, typeUrl, resources }),
    received: (holds) =>
      new Promise((resolve, reject) => {
        const already = requests.find(holds);
        if (already !== undefined) resolve(already);
        else waiting.push({ holds, resolve });
        // Ends what hangs; with the requests that came, the reason can be told.
        setTimeout(() => reject(new Error(`no such request: ${JSON.stringify(requests.slice(-3))}`)), 30_000).unref();
      }),
    stop,
    restart: listen,
    [Symbol.asyncDispose]: stop,
  };
}
