/** The API token of the data plane, if configured: `Authorization: Bearer …`, compared in constant time. */
import { createHash, timingSafeEqual } from "node:crypto";

/** Digests have equal length, so the comparison does not even leak the token's length. */
function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

const BEARER = /^Bearer +([^\s]+) *$/i;

/** Returns a function that checks an `Authorization` header for the token. */
export function tokenGuard(token: string): (authorization: string | undefined) => boolean {
  const expected = digest(token);
  return (authorization) => {
    const given = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
    return given !== undefined && timingSafeEqual(digest(given), expected);
  };
}
