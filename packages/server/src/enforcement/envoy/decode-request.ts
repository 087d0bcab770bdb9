/**
 * A hand-written decoder for RateLimitRequest, from the published field numbers: takes a third of protobufjs's time, on the path of every
 * call.
 * In: a message. Out: a request with a domain, descriptors of entries, and hits, as nearly all have; undefined for anything else, valid or
 * not: protobufjs then decodes it. So nothing is refused here, and nothing is guessed.
 * Decoding stops at the first descriptor or entry beyond the bound, for which the request will be refused: a descriptor may take only two
 * bytes.
 */
import { MOST_DESCRIPTORS, MOST_ENTRIES } from "./message-bounds.js";
import type { RateLimitDescriptor, RateLimitRequest } from "./rate-limit-messages.js";

/** A request whose descriptors have entries and nothing else. */
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

/** Tag bytes: field number and wire type. All but hits are length-delimited. */
const DOMAIN = (1 << 3) | 2;
const DESCRIPTOR = (2 << 3) | 2;
const HITS = 3 << 3;
const ENTRY = (1 << 3) | 2;
const KEY = (1 << 3) | 2;
const VALUE = (2 << 3) | 2;
const MOST_ASCII = 0x7f;
const MOST_UINT32_BYTES = 5;

/** Decoder state; module-level, because decoding is synchronous and never nested. */
let bytes: Buffer = Buffer.alloc(0);
let at = 0;
/** Something unexpected: leave the message to protobufjs. */
let isOdd = false;
/** A bound is exceeded: skip the rest. */
let isBeyond = false;

export function decodePlain(message: Buffer): PlainRequest | undefined {
  bytes = message;
  at = 0;
  isOdd = false;
  isBeyond = false;
  const request = new PlainRequest();
  while (at < message.length && !isOdd && !isBeyond) {
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
  while (at < end && !isOdd && !isBeyond) {
    if (bytes[at++] === ENTRY) readEntry(descriptor, end);
    else isOdd = true;
  }
  if (at !== end && !isBeyond) isOdd = true;
  if (descriptors.push(descriptor) > MOST_DESCRIPTORS) isBeyond = true;
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
  if (entries.push(entry) > MOST_ENTRIES) isBeyond = true;
}

/** Reads a length prefix and returns the end offset. */
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

/**
 * Interned strings, by a hash of their bytes: domains and entry keys, which repeat in nearly every request. A new string replaces the old
 * one.
 */
const known: string[] = new Array<string>(64).fill("");
const LONGEST_KNOWN = 32;

/** Like `readText`, but an interned string is neither decoded nor hashed again. */
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
  // Non-ASCII strings are shorter than their bytes, so they are never found again.
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
