/**
 * Writes a RateLimitResponse by hand, from the published field numbers. A third of what protobufjs takes, which makes a list of closures for each
 * field; answers are most of what the data plane writes. Bytes equal protobufjs's (a test compares them); a response with dynamic
 * metadata is left to it.
 */
import type { DescriptorStatus, RateLimitResponse } from "./rate-limit-messages.js";

/** Field number and wire type, as one byte: 0 is a varint, 2 has a length before it. */
const varint = (field: number): number => field << 3;
const bytes = (field: number): number => (field << 3) | 2;

const FIRST_BYTES = 4_096;
const MOST_VARINT_BYTES = 10;
const MOST_ASCII = 0x7f;

/** Used again for every response: nothing in it outlives `encodeResponse`. */
let out = Buffer.allocUnsafeSlow(FIRST_BYTES);
let at = 0;

export function encodeResponse({ overallCode, statuses, responseHeadersToAdd, rawBody }: RateLimitResponse): Buffer {
  at = 0;
  number(1, overallCode);
  for (const status of statuses) nested(2, () => writeStatus(status));
  for (const { key, value } of responseHeadersToAdd) {
    nested(3, () => {
      text(1, key);
      text(2, value);
    });
  }
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
    nested(2, () => {
      number(1, currentLimit.requestsPerUnit);
      number(2, currentLimit.unit);
      text(3, currentLimit.name);
    });
  }
  number(3, limitRemaining);
  if (durationUntilReset !== undefined) {
    nested(4, () => {
      number(1, durationUntilReset.seconds);
      number(2, durationUntilReset.nanos);
    });
  }
}

/** At least so many bytes are free. */
function room(count: number): void {
  if (at + count <= out.length) return;
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * out.length, at + count));
  out.copy(larger, 0, 0, at);
  out = larger;
}

/** A whole number that is not negative. */
function number(field: number, value: number): void {
  room(1 + MOST_VARINT_BYTES);
  out[at++] = varint(field);
  length(value);
}

/** Beyond 32 bits by division: shifts would cut them off. */
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

/** Its length is known when it is written: one byte is left for it, and most fit. */
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
