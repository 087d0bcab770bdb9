/**
 * Reads a RateLimitRequest by hand, from the published field numbers: a third of what protobufjs takes, on the path of every call.
 * In: a message. Out: a request that has a domain, descriptors of entries and hits, as nearly all have; undefined for every other, whether it
 * has more fields or is no message at all: protobufjs reads that one. So nothing is refused here, and nothing is guessed.
 */
import type { RateLimitDescriptor, RateLimitRequest } from "./rate-limit-messages.js";

/** A request whose descriptors hold entries and nothing else. */
export class PlainRequest implements RateLimitRequest {
  domain = "";
  descriptors: PlainDescriptor[] = [];
  hitsAddend = 0;
}

class PlainDescriptor implements RateLimitDescriptor {
  readonly entries: { key: string; value: string }[] = [];
  readonly isNegativeHits = false;
  declare readonly limit: undefined;
  declare readonly hitsAddend: undefined;
}

/** Field number and wire type in one byte. Each of these has a length behind it, but for hits. */
const DOMAIN = (1 << 3) | 2;
const DESCRIPTOR = (2 << 3) | 2;
const HITS = 3 << 3;
const ENTRY = (1 << 3) | 2;
const KEY = (1 << 3) | 2;
const VALUE = (2 << 3) | 2;
const MOST_ASCII = 0x7f;
const MOST_UINT32_BYTES = 5;

/** What is being read: a request is read in one go, so there is only ever one. */
let bytes: Buffer = Buffer.alloc(0);
let at = 0;
/** Something else than expected: protobufjs decides what it is. */
let isOdd = false;

export function decodePlain(message: Buffer): PlainRequest | undefined {
  bytes = message;
  at = 0;
  isOdd = false;
  const request = new PlainRequest();
  while (at < message.length && !isOdd) {
    const tag = message[at++]!;
    if (tag === DESCRIPTOR) readDescriptor(request.descriptors);
    else if (tag === DOMAIN) request.domain = readKnown();
    else if (tag === HITS) request.hitsAddend = readUint32();
    else isOdd = true;
  }
  return isOdd ? undefined : request;
}

function readDescriptor(descriptors: PlainDescriptor[]): void {
  const end = readEnd();
  const descriptor = new PlainDescriptor();
  while (at < end && !isOdd) {
    if (bytes[at++] === ENTRY) readEntry(descriptor, end);
    else isOdd = true;
  }
  if (at !== end) isOdd = true;
  descriptors.push(descriptor);
}

function readEntry({ entries }: PlainDescriptor, within: number): void {
  const end = readEnd();
  if (end > within) isOdd = true;
  const entry = { key: "", value: "" };
  while (at < end && !isOdd) {
    const tag = bytes[at++]!;
    if (tag === KEY) entry.key = readKnown();
    else if (tag === VALUE) entry.value = readText();
    else isOdd = true;
  }
  if (at !== end) isOdd = true;
  entries.push(entry);
}

/** Where what begins here ends, by the length in front of it. */
function readEnd(): number {
  const length = readUint32();
  if (length > bytes.length - at) isOdd = true;
  return isOdd ? at : at + length;
}

function readUint32(): number {
  let value = 0;
  for (let i = 0; i < MOST_UINT32_BYTES && at < bytes.length; i++) {
    const byte = bytes[at++]!;
    value += (byte & MOST_ASCII) * 2 ** (7 * i);
    if (byte > MOST_ASCII) continue;
    if (value > 0xffff_ffff) isOdd = true;
    return value;
  }
  isOdd = true;
  return 0;
}

function readText(): string {
  const end = readEnd();
  const from = at;
  at = end;
  return isOdd ? "" : bytes.toString("utf8", from, end);
}

/** Texts that return in nearly every request: domains and keys of entries. By a hash of their bytes; a newcomer takes the place. */
const known: string[] = new Array<string>(64).fill("");
const LONGEST_KNOWN = 32;

/** The same as `readText`. A text that is known is neither copied nor hashed again. */
function readKnown(): string {
  const end = readEnd();
  const from = at;
  at = end;
  const length = end - from;
  if (isOdd || length === 0 || length > LONGEST_KNOWN) return isOdd ? "" : bytes.toString("utf8", from, end);
  const place = (length + 7 * bytes[from]! + 31 * bytes[end - 1]!) % known.length;
  const candidate = known[place]!;
  if (candidate.length === length && isAt(candidate, from)) return candidate;
  const text = bytes.toString("utf8", from, end);
  // Beyond ASCII a text has fewer characters than bytes, and is not found again.
  known[place] = text;
  return text;
}

function isAt(text: string, from: number): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > MOST_ASCII || unit !== bytes[from + i]) return false;
  }
  return true;
}
