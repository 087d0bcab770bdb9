/**
 * Whether a `Host` header names this service. A page of another site can point its own name at 127.0.0.1 (DNS rebinding): its browser then
 * takes this service for that site, and the page may read what it answers. The browser still sends the page's name as Host.
 * Addresses and `localhost` cannot be rebound: no DNS stands behind them. Pure.
 */
import { isIP } from "node:net";

interface OwnHostsOptions {
  /** `--host`. */
  readonly host: string;
  /** `--allowed-hosts`. */
  readonly allowed: readonly string[] | undefined;
}

/** A listener beyond loopback is reached by names that only its operator knows: there, names are checked where they were given. */
export function ownHosts({ host, allowed }: OwnHostsOptions): (header: string | undefined) => boolean {
  if (allowed === undefined && !isLoopback(host)) return () => true;
  const names = new Set([host, ...(allowed ?? [])].map(plainName));
  return (header) => {
    // HTTP/1.0 without a Host: no browser sends that.
    if (header === undefined) return true;
    const name = plainName(hostnameOf(header));
    return isIP(name) !== 0 || name === "localhost" || name.endsWith(".localhost") || names.has(name);
  };
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Without the port, and an IPv6 address without its brackets. */
function hostnameOf(header: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{0,5})?$/.exec(header) ?? [];
  return bracketed ?? plain ?? header;
}

/** Names differ neither by case nor by the dot that ends a full one. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}
