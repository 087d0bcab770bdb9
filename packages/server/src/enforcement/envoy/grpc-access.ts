/** Access control for the data plane over gRPC: the API token, and the client certificate's name. The same for all methods. */
import { type GrpcStatus, grpcCodes } from "../../grpc/statuses.js";

export interface AccessOptions {
  /** The subject alternative name that client certificates must have. */
  readonly clientName?: string | undefined;
  readonly carriesToken: ((authorization: string | undefined) => boolean) | undefined;
  /** Records a wrong API token. Resolves when the answer may go out, with the seconds to wait if its address failed too often. */
  noteFailure?(facts: Facts, hangUp: () => void): Promise<number | undefined>;
}

interface Facts {
  readonly peer: string;
  readonly headers: { "x-forwarded-for"?: string };
}

interface AnyCall {
  readonly metadata: { get(name: string): readonly (string | Buffer)[] };
  getPeer(): string;
  /** Closes the call's connection. Absent with grpc-js: there the call is refused instead. */
  hangUp?(): void;
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

/** Undefined if the caller is authorised. Returns a promise only for a wrong token, so the hot path has none. */
export function refusalOf(call: AnyCall, options: AccessOptions): GrpcStatus | Promise<GrpcStatus> | undefined {
  const { carriesToken, clientName, noteFailure } = options;
  if (carriesToken !== undefined) {
    const authorization = textOf(call, "authorization");
    if (!carriesToken(authorization)) {
      if (authorization === undefined || noteFailure === undefined) return NO_TOKEN;
      return noteFailure(factsOf(call), () => call.hangUp?.()).then(refusalAfter);
    }
  }
  return clientName !== undefined && !hasName(call, clientName) ? NO_NAME : undefined;
}

function refusalAfter(waitSeconds: number | undefined): GrpcStatus {
  if (waitSeconds === undefined) return NO_TOKEN;
  const slowed = `too many failed attempts from this address; try again in ${waitSeconds} s. A token that is right still passes`;
  return { ...NO_TOKEN, details: `${NO_TOKEN.details}: ${slowed}` };
}

export function textOf({ metadata }: Pick<AnyCall, "metadata">, name: string): string | undefined {
  return metadata.get(name)[0]?.toString();
}

/** grpc-js formats a peer with its port: `127.0.0.1:4711`, `[::1]:4711`. */
function factsOf(call: AnyCall): Facts {
  const peer = call
    .getPeer()
    .replace(/:\d+$/, "")
    .replace(/^\[(.*)\]$/, "$1");
  const forwarded = textOf(call, "x-forwarded-for");
  return { peer, headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded } };
}

/** Whether the client's certificate, already verified, has the name. */
function hasName(call: AnyCall, name: string): boolean {
  const names = call.getAuthContext().sslPeerCertificate?.subjectaltname ?? "";
  return names.split(", ").some((one) => one.slice(one.indexOf(":") + 1) === name);
}
