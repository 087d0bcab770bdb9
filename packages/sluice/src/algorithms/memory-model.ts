/**
 * How many bytes a counter takes in Redis when it is full, as `MEMORY USAGE` reports: from the sizes of Redis's own structures
 * (7.0, 64 bits) and of jemalloc's classes. In: a policy, and how long the key's name is. Out: bytes. Pure.
 * Strings come out exactly; a sorted set past 128 entries has towers of random height, and their mean is used.
 * Not counted, here as there: the tables of keys and of expiries, some 60 bytes a key.
 */
import type { Policy } from "./policy.js";

/** The header of every value, and the entry of a key in the table of keys. */
const OBJECT = 16;
const TABLE_ENTRY = 24;
/** Up to this length a string lies in one piece with its header. */
const LONGEST_EMBEDDED = 44;

const storedBytes = { "token-bucket": 28, gcra: 28, "fixed-window": 24, "sliding-counter": 36, pool: 144 } as const;

/** `zset-max-listpack-entries`: beyond it a sorted set becomes a skip list. */
const LONGEST_LISTPACK = 128;
/** How long the members are: a request's id inside a window; a lease's id, before its term (see the limiter's entry ids). */
const ENTRY_ID_LENGTH = 9;
const LEASE_ID_LENGTH = 16;

export function fullKeyBytes(policy: Policy, keyLength: number): number {
  return TABLE_ENTRY + allocated(textBytes(keyLength)) + fullValueBytes(policy);
}

function fullValueBytes(policy: Policy): number {
  switch (policy.stored) {
    case "rolling-window-packed":
      return stringBytes(PACKED_HEADER + policy.limit * packedWidth(policy.windowMs));
    case "rolling-window":
      return sortedSetBytes(policy.limit, ENTRY_ID_LENGTH);
    case "concurrency":
      return sortedSetBytes(policy.limit, LEASE_ID_LENGTH + 1 + String(policy.ttlMs).length);
    default:
      return stringBytes(storedBytes[policy.stored]);
  }
}

const PACKED_HEADER = 14;

/** As `packed-layout.lua` chooses it. */
function packedWidth(windowMs: number): number {
  if (windowMs <= 2 ** 16) return 2;
  if (windowMs <= 2 ** 24) return 3;
  return windowMs <= 2 ** 32 ? 4 : 5;
}

function stringBytes(length: number): number {
  return length <= LONGEST_EMBEDDED ? allocated(OBJECT + 3 + length + 1) : OBJECT + allocated(textBytes(length));
}

/** A text with the header that its length asks for, and a closing zero. */
function textBytes(length: number): number {
  const header = length < 2 ** 5 ? 1 : length < 2 ** 8 ? 3 : length < 2 ** 16 ? 5 : 9;
  return header + length + 1;
}

function sortedSetBytes(entries: number, member: number): number {
  if (entries <= LONGEST_LISTPACK) {
    // A header of six bytes and an end; an entry's text with two bytes around it, its score as a whole number in ten.
    return OBJECT + allocated(7 + entries * (member + 2 + 10));
  }
  // Each level is reached by a quarter of the nodes below it: the mean over the classes that towers of that height fall into.
  let node = 0;
  for (let levels = 1, share = 0.75; levels <= 8; levels++, share /= 4) node += share * allocated(24 + 16 * levels);
  const slots = 2 ** Math.ceil(Math.log2(entries)) * 8;
  const fixed = OBJECT + 16 + 32 + 56 + allocated(24 + 16 * 32) + slots;
  return fixed + entries * (allocated(textBytes(member)) + TABLE_ENTRY + node);
}

/** The class of jemalloc that holds so many bytes: steps of 16 up to 128, then four to each doubling. */
function allocated(bytes: number): number {
  if (bytes <= 8) return 8;
  if (bytes <= 128) return Math.ceil(bytes / 16) * 16;
  const step = 2 ** (Math.ceil(Math.log2(bytes)) - 3);
  return Math.ceil(bytes / step) * step;
}
