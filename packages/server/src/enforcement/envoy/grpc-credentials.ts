/**
 * TLS of the gRPC port: certificates that are renewed under way, and the name of a client's.
 */
import { ServerCredentials, type ServerUnaryCall } from "@grpc/grpc-js";
import { serverOptions, type TlsFiles } from "../../http/tls-files.js";

export function credentialsOf(tls: TlsFiles | undefined): ServerCredentials {
  return tls === undefined ? ServerCredentials.createInsecure() : new RenewedCredentials(tls);
}

/** grpc-js has credentials that watch files, but (1.14) takes the certificate for the authority; these follow ours. */
class RenewedCredentials extends ServerCredentials {
  constructor(tls: TlsFiles) {
    const { requestCert, rejectUnauthorized, ...context } = serverOptions(tls.current);
    super({ requestCert, rejectUnauthorized }, context);
    tls.onChange((renewed) => this.updateSecureContextOptions(renewed));
  }

  _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

/** Whether the certificate that the client showed, verified before, has the name. */
export function hasName(call: Pick<ServerUnaryCall<unknown, unknown>, "getAuthContext">, name: string): boolean {
  const names = call.getAuthContext().sslPeerCertificate?.subjectaltname ?? "";
  return names.split(", ").some((one) => one.slice(one.indexOf(":") + 1) === name);
}
