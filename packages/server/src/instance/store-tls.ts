/**
 * TLS options for the store besides a rediss URL: a private CA, a client certificate.
 * In: settings. Out: the files' contents, read once: renewed files are picked up by the next start, or by replaced workers.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { SluiceError } from "sluice";
import type { TlsOptions } from "sluice/redis";
import type { Settings } from "../settings/settings.js";

type StoreFiles = Pick<Settings, "store-ca" | "store-cert" | "store-key">;

export function storeTls(settings: StoreFiles): TlsOptions {
  const tls = {
    ...contentOf(settings, "ca"),
    ...contentOf(settings, "cert"),
    ...contentOf(settings, "key"),
  };
  try {
    createSecureContext(tls);
  } catch (error) {
    throw new SluiceError(
      "invalid-setting",
      `store-cert, store-key: expected a certificate and its key, got ${(error as Error).message}`,
    );
  }
  return tls;
}

function contentOf(settings: StoreFiles, name: "ca" | "cert" | "key"): Partial<Record<typeof name, Buffer>> {
  const file = settings[`store-${name}`];
  if (file === undefined) return {};
  try {
    const content = readFileSync(file);
    // OpenSSL silently ignores an unreadable CA, and every connection would fail.
    if (name !== "key") new X509Certificate(content);
    return { [name]: content };
  } catch (error) {
    throw new SluiceError("invalid-setting", `store-${name}: expected PEM, got ${(error as Error).message}`);
  }
}
