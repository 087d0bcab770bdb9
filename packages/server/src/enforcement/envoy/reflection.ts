/**
 * Server reflection, for clients such as grpcurl. Its library and the protos that it describes are loaded at the first request (lazily).
 */
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
    // Messages are read only from a call that has a listener, and ours gets one when the codec is there.
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

/** By the method's path. */
async function load(): Promise<Map<string, Loaded>> {
  const { ReflectionService } = await import("@grpc/reflection");
  const services = new Map<string, Loaded>();
  // Described with the names that Envoy publishes, which clients such as grpcurl then show.
  new ReflectionService(await loadProtos({ keepCase: true })).addToServer({
    addService: (definition, implementation) => services.set(definition[METHOD]!.path, { definition, implementation }),
  });
  return services;
}

/** Camel case, as JSON has it, and 64 bits as text. */
async function loadProtos({ keepCase = false } = {}): Promise<PackageDefinition> {
  const { loadSync } = await import("@grpc/proto-loader");
  const files = ["envoy/service/ratelimit/v3/rls.proto", "envoy/service/rate_limit_quota/v3/rlqs.proto"];
  return loadSync([...files, "grpc/health/v1/health.proto"], {
    keepCase,
    includeDirs: [protoFolder],
    longs: String,
    defaults: true,
    arrays: true,
  });
}
