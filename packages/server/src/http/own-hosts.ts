/**
 * Decides whether a `Host` header names this service (DNS rebinding protection). A foreign page can point its own name at 127.0.0.1: the
 * browser then takes this service for that site and lets the page read its answers. But it still sends the page's name as Host.
 * IP addresses and `localhost` cannot be rebound, as they involve no DNS. Pure.
 */
import { isIP } from "node:net";

interface OwnHostsOptions {
  /** `--host`. */
  readonly host: string;
  /** `--allowed-hosts`. */
  readonly allowed: readonly string[] | undefined;
}

/** On a public address only the operator knows the service's names, so they are checked only if configured. */
export function ownHosts({ host, allowed }: OwnHostsOptions): (header: string | undefined) => boolean {
  if (allowed === undefined && !isLoopback(host)) return () => true;
  const names = new Set([host, ...(allowed ?? [])].map(plainName));
  return (header) => {
    // HTTP/1.0 without a Host: browsers never send that.
    if (header === undefined) return true;
    const name = plainName(hostnameOf(header));
    return isIP(name) !== 0 || name === "localhost" || name.endsWith(".localhost") || names.has(name);
  };
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Strips the port, and the brackets of an IPv6 address. */
function hostnameOf(header: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{0,5})?$/.exec(header) ?? [];
  return bracketed ?? plain ?? header;
}

/** Case and a trailing dot (fully qualified name) make no difference. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}
