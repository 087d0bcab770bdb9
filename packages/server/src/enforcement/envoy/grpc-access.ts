/**
 * Who may call the data plane over gRPC: the API token, the name in the client's certificate. One rule for all its methods.
 */
import { type Metadata, type ServerUnaryCall, type StatusObject, status } from "@grpc/grpc-js";
import { hasName } from "./grpc-credentials.js";

export interface AccessOptions {
  /** The subject alternative name that a client's certificate must have. */
  readonly clientName?: string | undefined;
  readonly carriesToken: ((authorization: string | undefined) => boolean) | undefined;
  /** Notes a wrong API token; resolves when the answer may go out. */
  noteFailure?(facts: { peer: string; headers: { "x-forwarded-for"?: string } }): Promise<unknown>;
}

type AnyCall = Pick<ServerUnaryCall<unknown, unknown>, "metadata" | "getPeer" | "getAuthContext">;
type Refusal = Pick<StatusObject, "code" | "details">;

const NO_TOKEN: Refusal = {
  code: status.UNAUTHENTICATED,
  details: "authorization: expected Bearer and the API token",
};
const NO_NAME: Refusal = {
  code: status.PERMISSION_DENIED,
  details: "the client's certificate has not the name that is asked for",
};

/** Undefined for a caller that may. A promise only for a wrong token: the hot path has none. */
export function refusalOf(call: AnyCall, options: AccessOptions): Refusal | Promise<Refusal> | undefined {
  const { carriesToken, clientName, noteFailure } = options;
  if (carriesToken !== undefined) {
    const authorization = textOf(call, "authorization");
    if (!carriesToken(authorization)) {
      if (authorization === undefined || noteFailure === undefined) return NO_TOKEN;
      return noteFailure(factsOf(call)).then(() => NO_TOKEN);
    }
  }
  return clientName !== undefined && !hasName(call, clientName) ? NO_NAME : undefined;
}

export function textOf({ metadata }: { metadata: Metadata }, name: string): string | undefined {
  return metadata.get(name)[0]?.toString();
}

/** grpc-js spells a peer with its port: `127.0.0.1:4711`, `[::1]:4711`. */
function factsOf(call: AnyCall): { peer: string; headers: { "x-forwarded-for"?: string } } {
  const peer = call
    .getPeer()
    .replace(/:\d+$/, "")
    .replace(/^\[(.*)\]$/, "$1");
  const forwarded = textOf(call, "x-forwarded-for");
  return { peer, headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded } };
}
