/**
 * The dashboard's sign-in sessions: a signed cookie instead of the token itself, so that no page script can ever read a token.
 * In: a caller whose token was just checked, or the cookie of a later request. Out: the cookie's value, or the session's owner.
 *
 * Sessions are not stored. The cookie contains the token's name, an expiry and an id; the signature covers them and the token's hash, with
 * a key derived from the first token. So a session ends when its token is deleted or replaced, works on every worker and every instance
 * with the same first token, and cannot be forged from a copy of the database. Only sessions signed out early are stored, by id
 * (`ended-sessions.ts`). docs/decisions/0013 discusses the alternatives.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { stringifySetCookie } from "cookie";
import type { Role } from "../configuration/repository/rule-repository.js";
import { cookieValue } from "../http/cookies.js";

/** A working day: a browser left open must sign in again tomorrow. */
const SESSION_MS = 12 * 3_600_000;
const SESSION_COOKIE = "sluice-session";

/** Upper bound for a signed cookie: names have at most 64 characters. */
const LONGEST_VALUE = 512;

export interface Session {
  /** Random, so that sessions of the same token can be ended individually. */
  readonly id: string;
  readonly name: string;
  readonly endsAtMs: number;
  /** For single sign-on; otherwise the role is the token's. */
  readonly role?: Role;
}

export type SessionKey = Buffer;

export function sessionKey(firstToken: string): SessionKey {
  return Buffer.from(hkdfSync("sha256", firstToken, "", "sluice dashboard sessions, 2", 32));
}

export function newSession(name: string, role?: Role): Session {
  const id = randomBytes(16).toString("base64url");
  return { id, name, endsAtMs: Date.now() + SESSION_MS, ...(role !== undefined && { role }) };
}

export function signSession(
  { id, name, endsAtMs, role }: Session,
  secrets: { key: SessionKey; tokenHash: Buffer },
): string {
  const told = Buffer.from(JSON.stringify([name, endsAtMs, id, ...(role === undefined ? [] : [role])])).toString(
    "base64url",
  );
  return `${told}.${signatureOf(told, secrets).toString("base64url")}`;
}

/** A cookie's claims, not verified yet: the name selects the hash that verifies its signature. */
export function claimedSession(value: string): Session | undefined {
  if (value.length > LONGEST_VALUE) return undefined;
  try {
    const claim: unknown = JSON.parse(Buffer.from(value.split(".")[0]!, "base64url").toString("utf8"));
    if (!Array.isArray(claim) || (claim.length !== 3 && claim.length !== 4)) return undefined;
    const [name, endsAtMs, id, role] = claim;
    const isSession = typeof name === "string" && Number.isSafeInteger(endsAtMs) && typeof id === "string";
    const isRole = role === undefined || ["viewer", "editor", "admin"].includes(role);
    return isSession && isRole ? { id, name, endsAtMs, ...(role !== undefined && { role }) } : undefined;
  } catch {
    return undefined;
  }
}

export function isSignedBy(value: string, secrets: { key: SessionKey; tokenHash: Buffer }): boolean {
  const [told = "", signature = "", ...more] = value.split(".");
  const given = Buffer.from(signature, "base64url");
  const expected = signatureOf(told, secrets);
  return more.length === 0 && given.length === expected.length && timingSafeEqual(given, expected);
}

function signatureOf(told: string, { key, tokenHash }: { key: SessionKey; tokenHash: Buffer }): Buffer {
  return createHmac("sha256", key).update(tokenHash).update(told).digest();
}

/** The session cookie's value in a `Cookie` header. */
export function sessionCookieOf(header: string | undefined): string | undefined {
  return cookieValue(header, SESSION_COOKIE) || undefined;
}

/** `Path=/admin` hides it from the data plane and anything else on the host. An empty value deletes the cookie. */
export function sessionCookie({ value, isSecure }: { value: string; isSecure: boolean }): string {
  const maxAge = value === "" ? 0 : SESSION_MS / 1000;
  return stringifySetCookie({
    name: SESSION_COOKIE,
    value,
    path: "/admin",
    maxAge,
    httpOnly: true,
    sameSite: "strict",
    secure: isSecure,
  });
}
