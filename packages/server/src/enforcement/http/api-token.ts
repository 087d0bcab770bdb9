/**
 * The data plane's token, where one is set: `Authorization: Bearer …`, compared in constant time.
 */
import { createHash, timingSafeEqual } from "node:crypto";

/** Digests have one length, so that not even the token's length can be timed. */
function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

const BEARER = /^Bearer +([^\s]+) *$/i;

/** Tells whether an `Authorization` header carries the token. */
export function tokenGuard(token: string): (authorization: string | undefined) => boolean {
  const expected = digest(token);
  return (authorization) => {
    const given = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
    return given !== undefined && timingSafeEqual(digest(given), expected);
  };
}
