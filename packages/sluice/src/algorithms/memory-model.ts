/**
 * How many bytes a full counter takes in Redis, as `MEMORY USAGE` reports: computed from the sizes of Redis's own structures (7.0, 64 bits)
 * and of jemalloc's size classes. In: a policy, and the length of the key's name. Out: bytes. Pure. Exact for strings; a sorted set beyond
 * 128 entries has towers of random height, whose mean is used. Not counted, as in `MEMORY USAGE`: the tables of keys and of expiries, some
 * 60 bytes per key.
 */
import type { Policy } from "./policy.js";

/** The header of every value, and a key's entry in the table of keys. */
const OBJECT = 16;
const TABLE_ENTRY = 24;
/** A string up to this length is allocated in one piece with its header. */
const LONGEST_EMBEDDED = 44;

const storedBytes = { "fixed-window": 24, "sliding-counter": 36, pool: 144 } as const;

/** `zset-max-listpack-entries`: beyond it a sorted set becomes a skip list. */
const LONGEST_LISTPACK = 128;
/** Lengths of members: a request's id in a window; a lease's id, before its term (see the limiter's entry ids). */
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
    case "token-bucket":
    case "gcra":
      // A refill amount other than 1 is stored too (token-bucket.lua).
      return stringBytes(policy.amount === 1 ? 28 : 32);
    default:
      return stringBytes(storedBytes[policy.stored]);
  }
}

const PACKED_HEADER = 14;

/** As in `packed-layout.lua`. */
function packedWidth(windowMs: number): number {
  if (windowMs <= 2 ** 16) return 2;
  if (windowMs <= 2 ** 24) return 3;
  return windowMs <= 2 ** 32 ? 4 : 5;
}

function stringBytes(length: number): number {
  return length <= LONGEST_EMBEDDED ? allocated(OBJECT + 3 + length + 1) : OBJECT + allocated(textBytes(length));
}

/** A string with the header that its length requires, and a terminating zero. */
function textBytes(length: number): number {
  const header = length < 2 ** 5 ? 1 : length < 2 ** 8 ? 3 : length < 2 ** 16 ? 5 : 9;
  return header + length + 1;
}

function sortedSetBytes(entries: number, member: number): number {
  if (entries <= LONGEST_LISTPACK) {
    // A header of six bytes and an end byte; per entry, the member with two bytes around it, and its score as a whole number in ten.
    return OBJECT + allocated(7 + entries * (member + 2 + 10));
  }
  // Each level is reached by a quarter of the nodes below it: the mean over the size classes of towers of each height.
  let node = 0;
  for (let levels = 1, share = 0.75; levels <= 8; levels++, share /= 4) node += share * allocated(24 + 16 * levels);
  const slots = 2 ** Math.ceil(Math.log2(entries)) * 8;
  const fixed = OBJECT + 16 + 32 + 56 + allocated(24 + 16 * 32) + slots;
  return fixed + entries * (allocated(textBytes(member)) + TABLE_ENTRY + node);
}

/** The jemalloc size class for this many bytes: steps of 16 up to 128, then four per doubling. */
function allocated(bytes: number): number {
  if (bytes <= 8) return 8;
  if (bytes <= 128) return Math.ceil(bytes / 16) * 16;
  const step = 2 ** (Math.ceil(Math.log2(bytes)) - 3);
  return Math.ceil(bytes / step) * step;
}
