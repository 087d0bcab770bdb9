/**
 * `grpc.health.v1.Health`. Names that are not registered are reported as unknown and not stored: a watcher of one gets that answer, and
 * holds only its own call.
 */
import type { Server, ServerUnaryCall, ServerWritableStream, sendUnaryData } from "@grpc/grpc-js";
import { grpcCodes } from "../../grpc/statuses.js";
import { loadProto } from "./load-proto.js";
import { MALFORMED, methodOf } from "./message-codec.js";

const statuses = { serving: 1, notServing: 2, serviceUnknown: 3 } as const;
type Status = (typeof statuses)[keyof typeof statuses];

type Asked = { readonly service: string } | typeof MALFORMED;
interface Answer {
  readonly status: Status;
}

const malformed = { code: grpcCodes.invalidArgument, details: "the message is no HealthCheckRequest" };

export class HealthService {
  readonly #names: readonly string[];
  /** Open watches, with whether the watched service is known. */
  readonly #watching = new Map<ServerWritableStream<Asked, Answer>, boolean>();
  #status: Status = statuses.serving;

  /** `names` of the services; `""` stands for the whole server. */
  constructor(names: readonly string[]) {
    this.#names = names;
  }

  /** Reports NOT_SERVING from now on. */
  turnAway(): void {
    this.#status = statuses.notServing;
    for (const [call, isKnown] of this.#watching) if (isKnown) call.write({ status: this.#status });
  }

  /** Ends watches, which would otherwise never end. */
  endWatches(): void {
    for (const call of this.#watching.keys()) call.end();
    this.#watching.clear();
  }

  addTo(server: Pick<Server, "addService">): void {
    const root = loadProto(["grpc/health/v1/health.proto"]);
    const type = (name: string) => root.lookupType(`grpc.health.v1.${name}`);
    const request = type("HealthCheckRequest");
    const response = type("HealthCheckResponse");
    const path = "/grpc.health.v1.Health";
    server.addService(
      {
        Check: methodOf(`${path}/Check`, { request, response }),
        List: methodOf(`${path}/List`, { request: type("HealthListRequest"), response: type("HealthListResponse") }),
        Watch: methodOf(`${path}/Watch`, { request, response, responseStream: true }),
      },
      {
        Check: (call: ServerUnaryCall<Asked, Answer>, done: sendUnaryData<Answer>) => this.#check(call.request, done),
        List: (_call: unknown, done: sendUnaryData<{ statuses: Record<string, Answer> }>) =>
          done(null, { statuses: Object.fromEntries(this.#names.map((name) => [name, { status: this.#status }])) }),
        Watch: (call: ServerWritableStream<Asked, Answer>) => this.#watch(call),
      },
    );
  }

  #check(asked: Asked, done: sendUnaryData<Answer>): void {
    if (asked === MALFORMED) done(malformed);
    else if (this.#names.includes(asked.service)) done(null, { status: this.#status });
    else done({ code: grpcCodes.notFound, details: "no service of that name" });
  }

  #watch(call: ServerWritableStream<Asked, Answer>): void {
    if (call.request === MALFORMED) {
      call.emit("error", malformed);
      return;
    }
    const isKnown = this.#names.includes(call.request.service);
    // Register before writing: if this watch is one too many for its connection, the write ends the call.
    this.#watching.set(call, isKnown);
    call.on("cancelled", () => this.#watching.delete(call));
    call.write({ status: isKnown ? this.#status : statuses.serviceUnknown });
  }
}
