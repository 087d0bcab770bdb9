/**
 * The address by which a client is counted. In: the peer of the connection, its X-Forwarded-For, and the trusted proxies. Out: an address
 * as text. Never throws because of a request; configuration mistakes are warned of once.
 *
 * Forwarded addresses are read from the right, as far as each hop is trusted: what is further left was written by the client itself, or by
 * someone unknown.
 */
import { SluiceError } from "../errors.js";
import { type Address, leadingBits, parseAddress } from "../rules/cidr.js";
import { compileTrust, type Trust, type TrustedProxies, trustsEverybody } from "./trusted-proxies.js";
import { warnOnce } from "./warn-once.js";

export interface ClientAddressOptions {
  /** The proxies that may set the client's address in X-Forwarded-For. Default: none. */
  trustProxy?: TrustedProxies;
  /**
   * IPv6 clients own whole prefixes and could use a new address for every request, so they are counted by prefix. Bits, 1 to 128; 128
   * counts single addresses. Default 56.
   */
  ipv6Prefix?: number;
}

/** What a server knows about the path of a request. */
export interface Hops {
  /** The address at the other end of the connection; absent for Unix sockets and closed connections. */
  readonly peer: string | undefined;
  /** The value of X-Forwarded-For, if present; several fields as a list. */
  readonly forwarded?: string | readonly string[] | undefined;
}

/**
 * The one name under which all requests without an address are counted. If they passed uncounted, a client could escape every limit by
 * closing its connection early.
 */
export const UNKNOWN_ADDRESS = "unknown";

/** A longer forwarded list is an attack, not a chain of proxies. */
const MOST_FORWARDED = 64;

export const warnings = {
  FORWARDED_WITHOUT_TRUST:
    "a request carries X-Forwarded-For, but no proxy is trusted: all clients behind a proxy are counted as one. Set trustProxy " +
    "to your proxies' addresses or their number; if there is no proxy, clients are sending the header themselves and it is ignored.",
  TRUSTS_EVERYBODY:
    "every proxy is trusted, so that each client can choose its own address in X-Forwarded-For and escape its limits. " +
    "Trust only the addresses, or the number, of your own proxies.",
  MISSING_ADDRESS:
    `a request came without an address (a Unix socket, or a connection that is already gone); such requests are counted together as ` +
    `"${UNKNOWN_ADDRESS}". Behind a proxy on a Unix socket, set trustProxy: 1.`,
} as const;

export function warnOfSetup(mistake: keyof typeof warnings): void {
  warnOnce(`SLUICE_${mistake}`, warnings[mistake]);
}

/** Makes the function that reads client addresses, once per middleware or server. */
export function clientAddresses(options: ClientAddressOptions = {}): (hops: Hops) => string {
  const { trustProxy = false, ipv6Prefix } = options;
  const trust = compileTrust(trustProxy);
  const normalise = addressNormaliser(ipv6Prefix);
  if (trustsEverybody(trustProxy)) warnOfSetup("TRUSTS_EVERYBODY");
  const trustsNobody = trustProxy === false || trustProxy === 0;
  return ({ peer, forwarded }) => {
    if (forwarded !== undefined && trustsNobody) warnOfSetup("FORWARDED_WITHOUT_TRUST");
    return normalise(forwarded === undefined || trustsNobody ? peer : farthestTrusted({ peer, forwarded }, trust));
  };
}

/** The address of the first untrusted hop from the right; or the farthest there is. */
export function farthestTrusted({ peer, forwarded }: Hops, trust: Trust): string | undefined {
  const list =
    forwarded === undefined
      ? []
      : typeof forwarded === "string"
        ? forwarded.split(",")
        : forwarded.flatMap((field) => field.split(","));
  let address = peer;
  for (let hop = 0; hop < Math.min(list.length, MOST_FORWARDED); hop++) {
    // An empty address cannot be in a CIDR block; it still counts as a hop (nginx on a Unix socket).
    if (!trust(address ?? "", hop)) break;
    const next = bareAddress(list[list.length - 1 - hop]!);
    // Something unreadable was written by an untrusted party, or by a proxy that hides its peer ("unknown"): stop before it.
    if (next === undefined) break;
    address = next;
  }
  return address;
}

/** Strips the port and brackets that some proxies add; undefined if no address is left. */
function bareAddress(text: string): string | undefined {
  const trimmed = text.trim();
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(trimmed)?.[1];
  const withPort = /^([\d.]+):\d+$/.exec(trimmed)?.[1];
  const address = bracketed ?? withPort ?? trimmed;
  return parseAddress(address) === undefined ? undefined : address;
}

/** IPv4 unchanged, IPv4-mapped IPv6 as IPv4, IPv6 as the first address of its prefix. */
export function addressNormaliser(ipv6Prefix = 56): (address: string | undefined) => string {
  if (!Number.isSafeInteger(ipv6Prefix) || ipv6Prefix < 1 || ipv6Prefix > 128) {
    throw new SluiceError(
      "invalid-setting",
      `ipv6Prefix: expected a whole number from 1 to 128, got ${JSON.stringify(ipv6Prefix)}`,
    );
  }
  return (text) => {
    if (text === undefined || text === "") {
      warnOfSetup("MISSING_ADDRESS");
      return UNKNOWN_ADDRESS;
    }
    if (!text.includes(":")) return text;
    // Frameworks pass on the port that some proxies add; counted with it, each connection would be another client.
    const address = parseAddress(bareAddress(text) ?? text);
    if (address === undefined) return text;
    if (address.length === 4) return Array.from(address, (byte) => byte.charCodeAt(0)).join(".");
    return spellIpv6(leadingBits(address, ipv6Prefix).padEnd(16, "\0"));
  };
}

/** RFC 5952: lower case, no leading zeros, the longest run of zero groups as "::". */
function spellIpv6(address: Address): string {
  const groups = Array.from({ length: 8 }, (_, i) => (address.charCodeAt(2 * i) << 8) | address.charCodeAt(2 * i + 1));
  let gapAt = -1;
  let gap = 1;
  for (let start = 0; start < 8; start++) {
    let end = start;
    while (end < 8 && groups[end] === 0) end++;
    if (end - start > gap) {
      gapAt = start;
      gap = end - start;
    }
  }
  const spell = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(":");
  return gapAt === -1 ? spell(groups) : `${spell(groups.slice(0, gapAt))}::${spell(groups.slice(gapAt + gap))}`;
}
