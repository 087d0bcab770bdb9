/**
 * The proxies that may set a client's address. In: a hop count, or addresses, CIDR blocks and the names of private ranges. Out: a function
 * that returns whether a hop is trusted. Pure.
 */
import { SluiceError } from "../errors.js";
import { type Cidr, contains, parseAddress, parseCidr } from "../rules/cidr.js";

/**
 * `false`: none. A number: that many hops, counted from this server. Blocks: `10.0.0.0/8`, an address, or `loopback`, `linklocal`,
 * `uniquelocal`.
 */
export type TrustedProxies = false | number | string | readonly string[];

/** `hop` 0 is the peer of the connection. The same shape as the compiled "trust proxy" of Express. */
export type Trust = (address: string, hop: number) => boolean;

/** The names that Express and Fastify use. */
const namedBlocks: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1/128"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};

export function compileTrust(trusted: TrustedProxies): Trust {
  if (trusted === false) return () => false;
  if (typeof trusted === "number") {
    if (!Number.isSafeInteger(trusted) || trusted < 0) throw refused(trusted);
    return (_address, hop) => hop < trusted;
  }
  const blocks = (typeof trusted === "string" ? trusted.split(",") : trusted).flatMap(blocksOf);
  return (text) => {
    const address = parseAddress(text);
    return address !== undefined && blocks.some((block) => contains(block, address));
  };
}

/** Whether any client can claim any address: addresses then mean nothing. */
export function trustsEverybody(trusted: TrustedProxies): boolean {
  if (trusted === false) return false;
  if (typeof trusted === "number") return trusted > MOST_HOPS;
  return (typeof trusted === "string" ? trusted.split(",") : trusted).some(
    (block) => parseCidr(block.trim())?.bits === 0,
  );
}

/** No chain of proxies is this long; "999 hops" means "all". */
const MOST_HOPS = 32;

function blocksOf(text: string): Cidr[] {
  const trimmed = text.trim();
  const spelled = Object.hasOwn(namedBlocks, trimmed) ? namedBlocks[trimmed]! : [trimmed];
  return spelled.map((block) => {
    const cidr = parseCidr(block);
    if (cidr === undefined) throw refused(text);
    return cidr;
  });
}

function refused(value: unknown): SluiceError {
  const names = Object.keys(namedBlocks).join(", ");
  return new SluiceError(
    "invalid-setting",
    `trustProxy: expected false, a number of hops, or addresses and CIDR blocks (or ${names}), got ${JSON.stringify(value)}`,
  );
}
