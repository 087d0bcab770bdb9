/**
 * Sign-in sessions of the dashboard: a signed cookie instead of the token itself, so that no script of a page can ever read a token.
 * In: a caller whose token was just checked, or the cookie of a later request. Out: the cookie's value, or whose session it is.
 *
 * A session itself is not stored. The value names the token, its end and an id; the signature covers them and the token's hash, under a key
 * made from the first token. So a session ends when its token is deleted or replaced, works on every worker and on every instance that was
 * given the same first token, and cannot be forged from a copy of the database. Only sessions that are signed out before their time are
 * stored, by id (`ended-sessions.ts`). docs/decisions/0013 says what else was thought of.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { stringifySetCookie } from "cookie";
import type { Role } from "../configuration/repository/rule-repository.js";
import { cookieValue } from "../http/cookies.js";

/** A working day: a browser that stays open must sign in again tomorrow. */
const SESSION_MS = 12 * 3_600_000;
const SESSION_COOKIE = "sluice-session";

/** A signed cookie is this long at most: names have 64 characters. */
const LONGEST_VALUE = 512;

export interface Session {
  /** Random: two sessions of one token can be ended one by one. */
  readonly id: string;
  readonly name: string;
  readonly endsAtMs: number;
  /** Of a person who came by single sign-on; the role of others is their token's. */
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

/** The claims of a cookie, not verified yet: the name selects the hash that verifies its signature. */
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

/** The value of the session cookie in a `Cookie` header. */
export function sessionCookieOf(header: string | undefined): string | undefined {
  return cookieValue(header, SESSION_COOKIE) || undefined;
}

/** `Path=/admin`: the data plane and whatever else shares the host never sees it. An empty value deletes it. */
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
