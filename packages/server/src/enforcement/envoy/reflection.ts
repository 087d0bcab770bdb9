/** Server reflection, for clients such as grpcurl. Its library and the descriptors are loaded lazily, on the first request. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Server, ServerDuplexStream, ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import type { PackageDefinition } from "@grpc/proto-loader";
import { protoFolder } from "../../own-package.js";

const versions = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];
const METHOD = "ServerReflectionInfo";

interface Loaded {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

export function addReflection(server: Pick<Server, "addService">): void {
  let loading: Promise<Map<string, Loaded>> | undefined;
  for (const name of versions) {
    let loaded: Loaded | undefined;
    // A call is decoded only once it has a listener, and ours gets one after the codec has loaded.
    const codec = () => loaded!.definition[METHOD]!;
    const method = {
      path: `/${name}/${METHOD}`,
      requestStream: true,
      responseStream: true,
      requestSerialize: (message: unknown) => codec().requestSerialize(message),
      requestDeserialize: (bytes: Buffer) => codec().requestDeserialize(bytes),
      responseSerialize: (message: unknown) => codec().responseSerialize(message),
      responseDeserialize: (bytes: Buffer) => codec().responseDeserialize(bytes),
    };
    const answer = async (call: ServerDuplexStream<unknown, unknown>): Promise<void> => {
      loading ??= load();
      loaded ??= (await loading).get(method.path);
      (loaded!.implementation[METHOD] as (call: ServerDuplexStream<unknown, unknown>) => void)(call);
    };
    server.addService({ [METHOD]: method }, {
      [METHOD]: (call: ServerDuplexStream<unknown, unknown>) =>
        void answer(call).catch((error: Error) => call.emit("error", error)),
    } as UntypedServiceImplementation);
  }
}

/** By method path. */
async function load(): Promise<Map<string, Loaded>> {
  const { ReflectionService } = await import("@grpc/reflection");
  const services = new Map<string, Loaded>();
  new ReflectionService(await readDescriptors()).addToServer({
    addService: (definition, implementation) => services.set(definition[METHOD]!.path, { definition, implementation }),
  });
  return services;
}

/**
 * Uses descriptors compiled by protoc (proto/README.md): those that protobufjs generates lack imports, and have reserved ranges and map
 * entries that gRPC for Go, and so grpcurl, rejects.
 */
async function readDescriptors(): Promise<PackageDefinition> {
  const fileDescriptorProtos = filesIn(await readFile(join(protoFolder, "reflection.binpb")));
  // The library reads nothing else from a definition.
  return { files: { fileDescriptorProtos } } as unknown as PackageDefinition;
}

/** A FileDescriptorSet has one field: its files, each with a one-byte tag and a varint length. */
function filesIn(set: Buffer): Buffer[] {
  const files: Buffer[] = [];
  for (let at = 0; at < set.length; ) {
    let length = 0;
    for (let shift = 0, more = true; more; shift += 7) {
      const byte = set[++at]!;
      length |= (byte & 0x7f) << shift;
      more = byte > 0x7f;
    }
    files.push(set.subarray(at + 1, at + 1 + length));
    at += 1 + length;
  }
  return files;
}
