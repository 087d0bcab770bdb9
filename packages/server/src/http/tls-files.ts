/**
 * Certificates from files, reloaded when they change: a renewed certificate is served without a restart. If the new one cannot be used
 * (half written, key mismatch), the current one stays in force.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { SluiceError } from "sluice";
import type { Log } from "../log.js";

interface TlsFileNames {
  readonly cert: string;
  readonly key: string;
  /** CA for client certificates; absent: none required. */
  readonly clientCa: string | undefined;
  /** The settings that name these files, for messages. */
  readonly settings?: string;
}

interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca?: Buffer;
}

/** Options for `node:tls` and `node:https`. Requests client certificates only if there is a CA to verify them. */
export function serverOptions(tls: Tls): Tls & { requestCert: boolean; rejectUnauthorized: boolean } {
  return { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined };
}

/** Polled, because mounted secrets change by a symlink swap, which file watchers miss. */
const LOOK_EVERY_MS = 1_000;

export class TlsFiles {
  readonly #names: TlsFileNames;
  readonly #log: Log;
  readonly #listeners: ((tls: Tls) => void)[] = [];
  readonly #timer: NodeJS.Timeout;
  #seen: string;
  /** The last failure that was logged: the reload is retried on each poll, but logged once. */
  #warned = "";
  #current: Tls;

  /** Throws `invalid-setting` if the files are not a certificate and its key. */
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
      // Certificate and key are written one after the other: a mismatch may resolve by the next poll.
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
  // OpenSSL ignores the unreadable rest of a certificate list: a half-written CA file would lock all clients out.
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
