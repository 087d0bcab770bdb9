/**
 * A hand-written encoder for RateLimitResponse, from the published field numbers. Takes a third of the time of protobufjs, which builds a
 * list of closures per field; responses are most of what the data plane writes. A test compares the bytes with protobufjs's; responses with
 * dynamic metadata are left to it.
 */
import type { DescriptorStatus, RateLimitResponse } from "./rate-limit-messages.js";

/** Tag bytes: field number and wire type; 0 is a varint, 2 is length-delimited. */
const varint = (field: number): number => field << 3;
const bytes = (field: number): number => (field << 3) | 2;

const FIRST_BYTES = 4_096;
const MOST_VARINT_BYTES = 10;
const MOST_ASCII = 0x7f;

/** Reused for every response: nothing in it outlives `encodeResponse`. */
let out = Buffer.allocUnsafeSlow(FIRST_BYTES);
let at = 0;

export function encodeResponse({ overallCode, statuses, responseHeadersToAdd, rawBody }: RateLimitResponse): Buffer {
  at = 0;
  number(1, overallCode);
  for (const status of statuses) nested(2, () => writeStatus(status));
  for (const header of responseHeadersToAdd) nested(3, () => writeHeader(header));
  if (rawBody !== undefined && rawBody.length > 0) {
    room(rawBody.length + 2 * MOST_VARINT_BYTES);
    out[at++] = bytes(5);
    length(rawBody.length);
    at += rawBody.copy(out, at);
  }
  return Buffer.from(out.subarray(0, at));
}

function writeStatus({ code, currentLimit, limitRemaining, durationUntilReset }: DescriptorStatus): void {
  number(1, code);
  if (currentLimit !== undefined) {
    nested(2, () => writeLimit(currentLimit));
  }
  number(3, limitRemaining);
  if (durationUntilReset !== undefined) {
    nested(4, () => {
      number(1, durationUntilReset.seconds);
      number(2, durationUntilReset.nanos);
    });
  }
}

function writeLimit({ requestsPerUnit, unit, name }: NonNullable<DescriptorStatus["currentLimit"]>): void {
  number(1, requestsPerUnit);
  number(2, unit);
  text(3, name);
}

function writeHeader({ key, value }: { key: string; value: string }): void {
  text(1, key);
  text(2, value);
}

/** Ensures at least `count` free bytes. */
function room(count: number): void {
  if (at + count <= out.length) return;
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * out.length, at + count));
  out.copy(larger, 0, 0, at);
  out = larger;
}

/** Writes a non-negative whole number. */
function number(field: number, value: number): void {
  room(1 + MOST_VARINT_BYTES);
  out[at++] = varint(field);
  length(value);
}

/** Uses division, because shifts would truncate to 32 bits. */
function length(value: number): void {
  let rest = value;
  while (rest > MOST_ASCII) {
    out[at++] = (rest % 128) | 0x80;
    rest = Math.floor(rest / 128);
  }
  out[at++] = rest;
}

function text(field: number, value: string): void {
  nested(field, () => {
    room(3 * value.length);
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > MOST_ASCII) {
        at += out.write(value.slice(i), at);
        return;
      }
      out[at++] = unit;
    }
  });
}

/** Reserves one byte for the length, which is known only after writing; most nested messages fit. */
function nested(field: number, write: () => void): void {
  room(1 + MOST_VARINT_BYTES);
  out[at++] = bytes(field);
  const start = ++at;
  write();
  const size = at - start;
  if (size <= MOST_ASCII) {
    out[start - 1] = size;
    return;
  }
  const more = size < 128 ** 2 ? 1 : size < 128 ** 3 ? 2 : 3;
  room(more);
  out.copyWithin(start + more, start, at);
  at = start - 1;
  length(size);
  at += size;
}

/** The constant parts of the response to a request that passed a single rule. */
export interface PassParts {
  /** Complete fields: the status' `current_limit`, and the `RateLimit-Policy` header. */
  readonly limit: Buffer;
  readonly policyField: Buffer;
  /** The value of `RateLimit`, up to its first number. */
  readonly rateLimit: Buffer;
}

const RATE_LIMIT = Buffer.from("RateLimit", "latin1");
const REMAINING_TO_RESET = Buffer.from(";t=", "latin1");
const LONGEST_NUMBER = 16;

/** Undefined if a length of such a response might not fit one byte. */
export function passParts({
  limit,
  policyField,
  rule,
}: {
  limit: NonNullable<DescriptorStatus["currentLimit"]>;
  policyField: { key: string; value: string };
  rule: string;
}): PassParts | undefined {
  const written = (write: () => void): Buffer => {
    at = 0;
    write();
    return Buffer.from(out.subarray(0, at));
  };
  const parts = {
    limit: written(() => nested(2, () => writeLimit(limit))),
    policyField: written(() => nested(3, () => writeHeader(policyField))),
    rateLimit: Buffer.from(`"${rule}";r=`, "latin1"),
  };
  const statusBytes = parts.limit.length + 4 * MOST_VARINT_BYTES;
  const headerBytes = parts.rateLimit.length + RATE_LIMIT.length + 2 * LONGEST_NUMBER + 8;
  return Math.max(statusBytes, headerBytes) > MOST_ASCII ? undefined : parts;
}

/** Encodes a response with one status and two headers. Numbers must be below 2^53. */
export function encodePass(
  { limit, policyField, rateLimit }: PassParts,
  { remaining, resetSeconds }: { remaining: number; resetSeconds: number },
): Buffer {
  at = 0;
  number(1, 1);
  out[at++] = bytes(2);
  const statusAt = at++;
  number(1, 1);
  put(limit);
  number(3, remaining);
  out[at++] = bytes(4);
  const durationAt = at++;
  number(1, resetSeconds);
  number(2, 0);
  out[durationAt] = at - durationAt - 1;
  out[statusAt] = at - statusAt - 1;
  put(policyField);
  out[at++] = bytes(3);
  const headerAt = at++;
  out[at++] = bytes(1);
  out[at++] = RATE_LIMIT.length;
  put(RATE_LIMIT);
  out[at++] = bytes(2);
  const valueAt = at++;
  put(rateLimit);
  decimal(remaining);
  put(REMAINING_TO_RESET);
  decimal(resetSeconds);
  out[valueAt] = at - valueAt - 1;
  out[headerAt] = at - headerAt - 1;
  return Buffer.from(out.subarray(0, at));
}

function put(part: Buffer): void {
  room(part.length + 8 * MOST_VARINT_BYTES);
  // For a few dozen bytes a loop is faster than a copy.
  for (let i = 0; i < part.length; i++) out[at++] = part[i]!;
}

function decimal(value: number): void {
  let digits = 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) digits++;
  let rest = value;
  for (let i = at + digits - 1; i >= at; i--) {
    out[i] = 0x30 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
  at += digits;
}
