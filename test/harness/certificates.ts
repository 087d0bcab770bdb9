/** A certificate for 127.0.0.1, made at the time of the test, that is its own authority. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { components } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "./leash.js";

export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  /** What a client must be told to trust. */
  readonly ca: Buffer;
}

export function makeCertificate(): Certificate {
  const folder = makeTempFolder("certificate");
  const [keyFile, certFile] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync(components.openssl.find()!, [...kind, "-keyout", keyFile, "-out", certFile, ...subject], {
    stdio: "pipe",
  });
  return { certFile, keyFile, ca: readFileSync(certFile) };
}

/** What a server, and redis-cli, are told. A Redis replaces `PORT` by its own. */
export function tlsArgs({ certFile, keyFile }: Certificate): { server: string[]; cli: string[] } {
  const settings = {
    port: "0",
    "tls-port": "PORT",
    "tls-cert-file": certFile,
    "tls-key-file": keyFile,
    "tls-ca-cert-file": certFile,
    "tls-auth-clients": "no",
    "tls-replication": "yes",
  };
  return {
    server: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
    cli: ["--tls", "--cacert", certFile],
  };
}
