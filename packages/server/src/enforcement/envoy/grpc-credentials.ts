/** TLS for grpc-js, with certificates that are reloaded at run time. */
import { ServerCredentials } from "@grpc/grpc-js";
import { serverOptions, type TlsFiles } from "../../http/tls-files.js";

export function credentialsOf(tls: TlsFiles | undefined): ServerCredentials {
  return tls === undefined ? ServerCredentials.createInsecure() : new RenewedCredentials(tls);
}

/** grpc-js has credentials that watch files, but (1.14) they use the certificate as the CA; these follow our `TlsFiles`. */
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
