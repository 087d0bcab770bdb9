/**
 * Names for a request's entries inside counters. Short, because a sorted set keeps one per admitted request; a random start makes them
 * unique across processes.
 */
import { randomBytes } from "node:crypto";

const prefix = randomBytes(3).toString("base64url");
let counter = randomBytes(3).readUIntBE(0, 3);

/**
 * Four random characters per process and a count: enough to tell the entries of one window apart. Always nine characters, so that memory
 * use is predictable.
 */
export function nextEntryId(): string {
  counter = (counter + 1) % 0x1000000;
  return prefix + counter.toString(36).padStart(5, "0");
}

/**
 * Knowing a lease id is enough to release the lease, so it must not be guessable. No leading dash: `sluice release` would parse it as an
 * option.
 */
export function newLeaseId(): string {
  return randomBytes(12).toString("base64url").replace(/^-/, "_");
}
