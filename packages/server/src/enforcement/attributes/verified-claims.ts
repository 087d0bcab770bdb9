/**
 * The claims of a request's JSON Web Token, if it verifies. If not, the claims are absent: this is not access control, it only means that
 * nothing is known about the bearer.
 * Verified tokens are cached until they expire, because a signature check costs many times what a decision does.
 */
import { createPublicKey, createSecretKey, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { createLocalJWKSet, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from "jose";
import { SluiceError } from "sluice";
import type { Mapping } from "./mapping-file.js";
import { remoteKeys } from "./remote-keys.js";

export type Claims = Readonly<Record<string, unknown>>;
export type ClaimsOf = (token: string) => Promise<Claims | undefined>;

const MOST_REMEMBERED = 10_000;
/** Also bounds how long a revoked key keeps verifying. */
const LONGEST_REMEMBERED_MS = 60_000;
const LONGEST_TOKEN = 8_192;

export function verifiedClaims(jwt: NonNullable<Mapping["jwt"]>, besideFile: (path: string) => string): ClaimsOf {
  const verify = verifier(jwt, besideFile);
  const remembered = new Map<string, { claims: JWTPayload; endsAtMs: number }>();
  return async (token) => {
    if (token.length > LONGEST_TOKEN) return undefined;
    const known = remembered.get(token);
    if (known !== undefined && known.endsAtMs > Date.now()) return known.claims;
    remembered.delete(token);
    try {
      const claims = await verify(token);
      const endsAtMs = Math.min(Date.now() + LONGEST_REMEMBERED_MS, (claims.exp ?? Number.POSITIVE_INFINITY) * 1000);
      // Evicts the oldest entry; a Map keeps insertion order.
      if (remembered.size >= MOST_REMEMBERED) remembered.delete(remembered.keys().next().value!);
      remembered.set(token, { claims, endsAtMs });
      return claims;
    } catch {
      return undefined;
    }
  };
}

function verifier(
  jwt: NonNullable<Mapping["jwt"]>,
  besideFile: (path: string) => string,
): (token: string) => Promise<JWTPayload> {
  const options: JWTVerifyOptions = {
    ...(jwt.issuer !== undefined && { issuer: jwt.issuer }),
    ...(jwt.audience !== undefined && { audience: jwt.audience }),
    ...(jwt.algorithms !== undefined && { algorithms: jwt.algorithms }),
  };
  const key = loadKey(jwt, besideFile);
  if (typeof key === "function") return async (token) => (await jwtVerify(token, key, options)).payload;
  return async (token) => (await jwtVerify(token, key, options)).payload;
}

/** The kind of key determines the accepted algorithms: a token HMAC-signed with a public key is refused (algorithm confusion). */
function loadKey(jwt: NonNullable<Mapping["jwt"]>, besideFile: (path: string) => string): KeyObject | JWTVerifyGetKey {
  const { jwks, publicKey, secret } = jwt;
  try {
    if (jwks !== undefined && /^https?:/.test(jwks)) return remoteKeys(new URL(jwks));
    if (jwks !== undefined) return createLocalJWKSet(JSON.parse(readFileSync(besideFile(jwks), "utf8")));
    if (publicKey !== undefined) return createPublicKey(readFileSync(besideFile(publicKey)));
    return createSecretKey(secretIn(readFileSync(besideFile(secret!), "utf8")));
  } catch (error) {
    const expected = jwks !== undefined ? "a key set" : publicKey !== undefined ? "a public key (PEM)" : "a secret";
    throw new SluiceError(
      "invalid-setting",
      `attributes: jwt: expected ${expected} in ${jwks ?? publicKey ?? secret}, got ${(error as Error).message}`,
    );
  }
}

/** Anyone can sign with an empty secret. */
function secretIn(text: string): Buffer {
  const secret = Buffer.from(text.trim());
  if (secret.length === 0) throw new Error("an empty file");
  return secret;
}
