/**
 * Single sign-on by OpenID Connect: authorization code with PKCE, state and nonce; the role comes from a claim of the ID token.
 * What a sign-in must remember lies in a signed cookie of ten minutes, so that every instance can finish what another began.
 * The client library is loaded with the first sign-in.
 */
import { createHash, createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { Configuration as Provider } from "openid-client";
import type { Role } from "../configuration/repository/rule-repository.js";

interface SingleSignOnOptions {
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  /** Where browsers reach the console; the provider sends them back below it. */
  readonly publicUrl: string;
  readonly scopes: string;
  /** The claim that holds roles; dots lead into objects. */
  readonly roleClaim: string;
  /** Which value of the claim is which role. */
  readonly roles: Readonly<Record<string, string>>;
  /** From which the key of the cookie is made. */
  readonly firstToken: string;
}

interface SignedInPerson {
  readonly name: string;
  readonly role: Role;
  /** A page of the console. */
  readonly to: string;
}

/** `denied`: the provider or the person said no; `expired`: begun elsewhere or too long ago; `no-role`: the claim names none. */
type SignInFailure = "denied" | "expired" | "no-role" | "failed";

export class SignInFailed extends Error {
  readonly why: SignInFailure;

  constructor(why: SignInFailure, message: string) {
    super(message);
    this.why = why;
  }
}

export const CALLBACK = "/admin/v1/session/sso/callback";
export const SIGN_IN_MS = 10 * 60_000;
const TIMEOUT_SECONDS = 10;
const LONGEST_NAME = 100;
const ranks: readonly Role[] = ["admin", "editor", "viewer"];

interface Begun {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly to: string;
  readonly endsAtMs: number;
}

export class SingleSignOn {
  readonly #options: SingleSignOnOptions;
  readonly #key: Buffer;
  #provider: Promise<Provider> | undefined;

  constructor(options: SingleSignOnOptions) {
    this.#options = options;
    this.#key = Buffer.from(hkdfSync("sha256", options.firstToken, "", "sluice single sign-on, 1", 32));
  }

  /** Whether browsers reach the console by TLS: cookies are `Secure` then. */
  get isSecure(): boolean {
    return this.#options.publicUrl.startsWith("https:");
  }

  /** Sessions are bound to it: another provider or client ends them. */
  get bond(): Buffer {
    const { issuer, clientId } = this.#options;
    return createHash("sha256")
      .update(JSON.stringify(["sso", issuer.href, clientId]))
      .digest();
  }

  /** Where to send the browser, and what its cookie must hold until it is back. */
  async begin(to: string | undefined): Promise<{ url: string; cookie: string }> {
    const openid = await import("openid-client");
    const provider = await this.#discover();
    const begun: Begun = {
      state: openid.randomState(),
      nonce: openid.randomNonce(),
      verifier: openid.randomPKCECodeVerifier(),
      to: localPath(to),
      endsAtMs: Date.now() + SIGN_IN_MS,
    };
    const url = openid.buildAuthorizationUrl(provider, {
      redirect_uri: this.#redirectUri(),
      scope: this.#options.scopes,
      state: begun.state,
      nonce: begun.nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(begun.verifier),
      code_challenge_method: "S256",
    });
    return { url: url.href, cookie: this.#sign(begun) };
  }

  /** Rejects with `SignInFailed`. */
  async finish(query: string, cookie: string | undefined): Promise<SignedInPerson> {
    const begun = this.#verified(cookie);
    if (begun === undefined) throw new SignInFailed("expired", "no sign-in of this browser is under way");
    const openid = await import("openid-client");
    const provider = await this.#discover();
    const url = new URL(`${this.#redirectUri()}?${query}`);
    let claims: Readonly<Record<string, unknown>>;
    try {
      const tokens = await openid.authorizationCodeGrant(provider, url, {
        pkceCodeVerifier: begun.verifier,
        expectedState: begun.state,
        expectedNonce: begun.nonce,
        idTokenExpected: true,
      });
      claims = tokens.claims()!;
    } catch (error) {
      const isDenied = error instanceof openid.AuthorizationResponseError;
      throw new SignInFailed(isDenied ? "denied" : "failed", wordsOf(error));
    }
    const role = roleOf(claims, this.#options);
    const name = nameOf(claims);
    if (role === undefined) {
      throw new SignInFailed("no-role", `${name}: the claim ${this.#options.roleClaim} names no role of this service`);
    }
    return { name, role, to: begun.to };
  }

  #redirectUri(): string {
    return `${this.#options.publicUrl}${CALLBACK}`;
  }

  /** Asked again after a failure. */
  async #discover(): Promise<Provider> {
    this.#provider ??= this.#ask();
    try {
      return await this.#provider;
    } catch (error) {
      this.#provider = undefined;
      throw new SignInFailed("failed", wordsOf(error));
    }
  }

  async #ask(): Promise<Provider> {
    const openid = await import("openid-client");
    const { issuer, clientId, clientSecret } = this.#options;
    const insecure = issuer.protocol === "http:" ? [openid.allowInsecureRequests] : [];
    return await openid.discovery(
      issuer,
      clientId,
      undefined,
      clientSecret === undefined ? openid.None() : openid.ClientSecretBasic(clientSecret),
      // The signature of the ID token is checked even though it comes straight from the provider.
      { execute: [openid.enableNonRepudiationChecks, ...insecure], timeout: TIMEOUT_SECONDS },
    );
  }

  #sign(begun: Begun): string {
    const told = Buffer.from(JSON.stringify(begun)).toString("base64url");
    return `${told}.${this.#signatureOf(told).toString("base64url")}`;
  }

  #verified(cookie: string | undefined): Begun | undefined {
    const [told = "", signature = "", ...more] = (cookie ?? "").split(".");
    const given = Buffer.from(signature, "base64url");
    const expected = this.#signatureOf(told);
    if (more.length > 0 || given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    const begun = JSON.parse(Buffer.from(told, "base64url").toString("utf8")) as Begun;
    return begun.endsAtMs > Date.now() ? begun : undefined;
  }

  #signatureOf(told: string): Buffer {
    return createHmac("sha256", this.#key).update(told).digest();
  }
}

/** Only a path of this service: anything else would make the sign-in an open redirect. */
function localPath(to: string | undefined): string {
  if (to === undefined || !/^\/(?![/\\])[\x21-\x7e]*$/.test(to) || to.includes("\\")) return "/";
  const base = "http://console.invalid";
  return URL.canParse(to, base) && new URL(to, base).origin === base ? to : "/";
}

/** The highest role that the claim names. */
function roleOf(
  claims: Readonly<Record<string, unknown>>,
  { roleClaim, roles }: Pick<SingleSignOnOptions, "roleClaim" | "roles">,
): Role | undefined {
  const value = Object.hasOwn(claims, roleClaim) ? claims[roleClaim] : inside(claims, roleClaim.split("."));
  const named = (Array.isArray(value) ? value : [value]).filter((one) => typeof one === "string");
  const found = named.flatMap((one) => (Object.hasOwn(roles, one) ? [roles[one]!] : []));
  return ranks.find((role) => found.includes(role));
}

function inside(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

/** A verified mail address reads best; an unverified one anybody could have entered. */
function nameOf({ email, email_verified, sub }: Readonly<Record<string, unknown>>): string {
  const name = typeof email === "string" && email_verified === true ? email : String(sub);
  return `sso:${name.replace(/[^\x21-\x7e]/g, "?").slice(0, LONGEST_NAME)}`;
}

/** Codes and messages of the library; its errors hold neither codes nor tokens in these. */
function wordsOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  return [code, message].filter((part) => part !== undefined).join(": ");
}
