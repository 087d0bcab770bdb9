/**
 * SSRF protection: the addresses that a webhook may connect to. The operator configures webhooks, but others control what a name resolves
 * to: unchecked, a name could point the service at its own neighbours or at a cloud's metadata service. Pure except for the injected
 * resolver.
 */
import { BlockList, isIP } from "node:net";

export interface Address {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Resolves a name to all its addresses; rejects if there are none. */
export type Resolve = (hostname: string) => Promise<readonly Address[]>;

/** Private, loopback, link-local (including cloud metadata), shared, documentation, multicast and reserved ranges. */
const notPublic4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const;

/** In IPv6 only the globally allocated range is public, without its tunnels that embed IPv4 addresses and its documentation ranges. */
const public6 = ["2000::", 3] as const;
const notPublic6 = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const;

const blocked = new BlockList();
for (const [net, prefix] of notPublic4) blocked.addSubnet(net, prefix, "ipv4");
for (const [net, prefix] of notPublic6) blocked.addSubnet(net, prefix, "ipv6");
const global6 = new BlockList();
global6.addSubnet(...public6, "ipv6");

export function isPublicAddress({ address, family }: Address): boolean {
  if (family === 4) return !blocked.check(address, "ipv4");
  // Addresses with a zone are link-local; those that embed an IPv4 address are outside of 2000::/3.
  return !address.includes("%") && global6.check(address, "ipv6") && !blocked.check(address, "ipv6");
}

/**
 * Returns the address to connect to. The caller must use it instead of resolving again: a second answer could differ (DNS rebinding). A
 * name with any private address among its public ones is refused.
 */
export async function allowedAddress(
  hostname: string,
  { resolve, allowPrivate }: { resolve: Resolve; allowPrivate: boolean },
): Promise<Address> {
  const bare = hostname.replace(/^\[|\]$/g, "");
  const family = isIP(bare);
  const addresses = family === 0 ? await resolve(bare) : [{ address: bare, family: family as 4 | 6 }];
  const [first] = addresses;
  if (first === undefined) throw new Error(`${bare} has no address`);
  const refused = allowPrivate ? undefined : addresses.find((address) => !isPublicAddress(address));
  if (refused === undefined) return first;
  throw new AddressRefused(
    `${bare} is at ${refused.address}, which is not public; --alert-allow-private true allows it`,
  );
}

/** Not retryable. */
export class AddressRefused extends Error {}
