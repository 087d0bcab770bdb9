/**
 * IP addresses and CIDR blocks. An address becomes its bytes, as a string of 4 or 16 characters: unlike byte arrays, strings can be
 * compared, sliced and used as Map keys directly. An IPv4 address mapped into IPv6 (`::ffff:1.2.3.4`) is that IPv4 address, so `::/0`
 * contains no IPv4 address. Pure.
 */

/** 4 or 16 characters, one per byte. */
export type Address = string;

export interface Cidr {
  /** The first address of the block: bits beyond `bits` are zero. */
  readonly first: Address;
  readonly bits: number;
}

/** The longest notation is 45 characters; a zone name may follow. */
const LONGEST_ADDRESS = 80;
const MAPPED_IPV4 = "\0\0\0\0\0\0\0\0\0\0\xff\xff";

/** In any notation; a zone (`fe80::1%eth0`) is ignored. */
export function parseAddress(text: string): Address | undefined {
  if (text.length > LONGEST_ADDRESS) return undefined;
  if (!text.includes(":")) return parseIpv4(text);
  const zoneAt = text.indexOf("%");
  const address = parseIpv6(zoneAt === -1 ? text : text.slice(0, zoneAt));
  return address?.startsWith(MAPPED_IPV4) ? address.slice(MAPPED_IPV4.length) : address;
}

/** `10.0.0.0/8`, or a plain address, which is a block of one. Bits beyond the prefix are ignored, as in routers. */
export function parseCidr(text: string): Cidr | undefined {
  // A zone is specific to one machine; a rule with one would not mean what it seems to.
  if (text.includes("%")) return undefined;
  const slashAt = text.indexOf("/");
  const spelled = slashAt === -1 ? text : text.slice(0, slashAt);
  const address = parseAddress(spelled);
  if (address === undefined) return undefined;
  let bits = address.length * 8;
  if (slashAt !== -1) {
    const prefix = text.slice(slashAt + 1);
    if (!/^(0|[1-9]\d{0,2})$/.test(prefix)) return undefined;
    const isMapped = address.length === 4 && spelled.includes(":");
    bits = Number(prefix) - (isMapped ? MAPPED_IPV4.length * 8 : 0);
    if (bits < 0 || bits > address.length * 8) return undefined;
  }
  return { first: leadingBits(address, bits).padEnd(address.length, "\0"), bits };
}

export function contains(cidr: Cidr, address: Address): boolean {
  return cidr.first.length === address.length && leadingBits(cidr.first, cidr.bits) === leadingBits(address, cidr.bits);
}

/** The bytes that contain the first `bits` bits, with the rest of the last byte zeroed. Equal for all addresses of a block. */
export function leadingBits(address: Address, bits: number): string {
  const whole = address.slice(0, bits >> 3);
  const rest = bits & 7;
  if (rest === 0) return whole;
  return whole + String.fromCharCode(address.charCodeAt(whole.length) & (0xff00 >> rest) & 0xff);
}

function parseIpv4(text: string): Address | undefined {
  if (text.length > 15) return undefined;
  let address = "";
  let byte = -1;
  let digits = 0;
  for (let i = 0; i <= text.length; i++) {
    const code = i === text.length ? 46 : text.charCodeAt(i);
    if (code === 46) {
      if (byte < 0) return undefined;
      address += String.fromCharCode(byte);
      byte = -1;
      digits = 0;
    } else {
      // "010" is 8 to some programs and 10 to others: such an address is invalid.
      if (code < 48 || code > 57 || (digits === 1 && byte === 0)) return undefined;
      byte = Math.max(byte, 0) * 10 + code - 48;
      digits++;
      if (byte > 255) return undefined;
    }
  }
  return address.length === 4 ? address : undefined;
}

/** RFC 4291, section 2.2: eight groups, one run of zeros as "::", the last two groups perhaps as IPv4. */
function parseIpv6(text: string): Address | undefined {
  const gapAt = text.indexOf("::");
  if (gapAt === -1) {
    const whole = parseGroups(text);
    return whole?.length === 16 ? whole : undefined;
  }
  const head = gapAt === 0 ? "" : parseGroups(text.slice(0, gapAt));
  const tail = gapAt + 2 === text.length ? "" : parseGroups(text.slice(gapAt + 2));
  if (head === undefined || tail === undefined || head.length + tail.length > 14) return undefined;
  // IPv4 notation may only end an address.
  if (text.slice(0, gapAt).includes(".")) return undefined;
  return head + "\0".repeat(16 - head.length - tail.length) + tail;
}

function parseGroups(text: string): string | undefined {
  const groups = text.split(":");
  if (groups.length > 8) return undefined;
  let bytes = "";
  for (let i = 0; i < groups.length; i++) {
    const group = groups[i]!;
    if (i === groups.length - 1 && group.includes(".")) {
      const ipv4 = parseIpv4(group);
      if (ipv4 === undefined) return undefined;
      bytes += ipv4;
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return undefined;
      const number = Number.parseInt(group, 16);
      bytes += String.fromCharCode(number >> 8, number & 0xff);
    }
  }
  return bytes;
}
