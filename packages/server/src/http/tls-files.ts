/**
 * Certificates from files, read again when they change: a renewed certificate is served without a restart, and one that cannot be
 * used (half written, of another key) leaves the one in force.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { SluiceError } from "sluice";
import type { Log } from "../log.js";

interface TlsFileNames {
  readonly cert: string;
  readonly key: string;
  /** The authority of client certificates; absent: clients need none. */
  readonly clientCa: string | undefined;
  /** Those that name the files, for messages. */
  readonly settings?: string;
}

interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca?: Buffer;
}

/** As `node:tls` and `node:https` take them, for a server that asks for client certificates only where it can verify them. */
export function serverOptions(tls: Tls): Tls & { requestCert: boolean; rejectUnauthorized: boolean } {
  return { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined };
}

/** Mounted secrets change by a swapped link, which file watchers miss; looking is cheap. */
const LOOK_EVERY_MS = 1_000;

export class TlsFiles {
  readonly #names: TlsFileNames;
  readonly #log: Log;
  readonly #listeners: ((tls: Tls) => void)[] = [];
  readonly #timer: NodeJS.Timeout;
  #seen: string;
  /** The last warning: the file is tried at every look, and a failure is logged once. */
  #warned = "";
  #current: Tls;

  /** Throws `invalid-setting` for files that are no certificate and its key. */
  constructor(names: TlsFileNames, log: Log) {
    this.#names = names;
    this.#log = log;
    this.#seen = fingerprint(names);
    try {
      this.#current = read(names);
    } catch (error) {
      const settings = names.settings ?? "tls-cert, tls-key";
      throw new SluiceError(
        "invalid-setting",
        `${settings}: expected a certificate and its key in PEM, got ${names.cert}, ${names.key}: ${(error as Error).message}`,
      );
    }
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  get current(): Tls {
    return this.#current;
  }

  onChange(listener: (tls: Tls) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = fingerprint(this.#names);
    if (now === this.#seen) return;
    const { cert } = this.#names;
    try {
      this.#current = read(this.#names);
      for (const listener of this.#listeners) listener(this.#current);
      this.#log.info("a renewed certificate is in force", { cert });
      this.#seen = now;
    } catch (error) {
      // Certificate and key are written one after the other: what does not fit yet may fit at the next look.
      if (this.#warned === now) return;
      this.#warned = now;
      this.#log.warn("a changed certificate cannot be used; the one in force stays", { cert, error: String(error) });
    }
  }
}

function read({ cert, key, clientCa }: TlsFileNames): Tls {
  const tls: Tls = {
    cert: readFileSync(cert),
    key: readFileSync(key),
    ...(clientCa !== undefined && { ca: readFileSync(clientCa) }),
  };
  createSecureContext(tls);
  // OpenSSL takes what it can read of a list and leaves the rest: an authority that is half written would shut every client out.
  checkCertificates(tls.cert, cert);
  if (tls.ca !== undefined) checkCertificates(tls.ca, clientCa!);
  return tls;
}

function checkCertificates(pem: Buffer, file: string): void {
  const text = pem.toString("latin1");
  const begun = text.split("-----BEGIN ").length - 1;
  const whole = text.match(/-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]+-----END [A-Z0-9 ]+-----/g) ?? [];
  if (whole.length === 0) throw new Error(`${file}: expected certificates in PEM`);
  for (const one of whole) new X509Certificate(one);
  const others =
    text.match(/-----BEGIN (?!(?:X509 |TRUSTED )?CERTIFICATE-----)[^-]+-----[^-]+-----END [^-]+-----/g) ?? [];
  if (begun !== whole.length + others.length) throw new Error(`${file}: a certificate in it is not whole`);
}

function fingerprint({ cert, key, clientCa }: TlsFileNames): string {
  return [cert, key, clientCa]
    .filter((file) => file !== undefined)
    .map((file) => {
      const stats = statSync(file, { throwIfNoEntry: false });
      return stats === undefined ? "gone" : `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
    })
    .join(" ");
}
