/**
 * Who may call the data plane over gRPC: the API token, the name in the client's certificate. One rule for all its methods.
 */
import { type GrpcStatus, grpcCodes } from "../../grpc/statuses.js";

export interface AccessOptions {
  /** The subject alternative name that a client's certificate must have. */
  readonly clientName?: string | undefined;
  readonly carriesToken: ((authorization: string | undefined) => boolean) | undefined;
  /** Notes a wrong API token; resolves when the answer may go out. */
  noteFailure?(facts: { peer: string; headers: { "x-forwarded-for"?: string } }): Promise<unknown>;
}

interface AnyCall {
  readonly metadata: { get(name: string): readonly (string | Buffer)[] };
  getPeer(): string;
  getAuthContext(): { readonly sslPeerCertificate?: { readonly subjectaltname?: string | undefined } };
}

const NO_TOKEN: GrpcStatus = {
  code: grpcCodes.unauthenticated,
  details: "authorization: expected Bearer and the API token",
};
const NO_NAME: GrpcStatus = {
  code: grpcCodes.permissionDenied,
  details: "the client's certificate has not the name that is asked for",
};

/** Undefined for a caller that may. A promise only for a wrong token: the hot path has none. */
export function refusalOf(call: AnyCall, options: AccessOptions): GrpcStatus | Promise<GrpcStatus> | undefined {
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

export function textOf({ metadata }: Pick<AnyCall, "metadata">, name: string): string | undefined {
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

/** Whether the certificate that the client showed, verified before, has the name. */
function hasName(call: AnyCall, name: string): boolean {
  const names = call.getAuthContext().sslPeerCertificate?.subjectaltname ?? "";
  return names.split(", ").some((one) => one.slice(one.indexOf(":") + 1) === name);
}
