/**
 * Names for a request's entries inside counters. Short, because a sorted set keeps one per admitted request; unique
 * across processes by a random start.
 */
import { randomBytes } from "node:crypto";

const prefix = randomBytes(3).toString("base64url");
let counter = randomBytes(3).readUIntBE(0, 3);

/** 4 random characters of this process and a count: enough to tell entries of one window apart. Always nine characters, so that memory use can be predicted. */
export function nextEntryId(): string {
  counter = (counter + 1) % 0x1000000;
  return prefix + counter.toString(36).padStart(5, "0");
}

/** A lease id is also the right to release it, so it must not be guessed. It begins with no dash: `sluice release` would take it for an option. */
export function newLeaseId(): string {
  return randomBytes(12).toString("base64url").replace(/^-/, "_");
}
