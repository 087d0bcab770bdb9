/**
 * Single sign-on with OpenID Connect: authorization code flow with PKCE, state and nonce; the role comes from a claim of the ID token.
 * The state of a sign-in is kept in a signed cookie for ten minutes, so that any instance can finish what another began.
 * The client library is loaded on the first sign-in.
 */
import { createHash, createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { Configuration as Provider } from "openid-client";
import type { Role } from "../configuration/repository/rule-repository.js";

interface SingleSignOnOptions {
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  /** The console's URL as browsers reach it; the provider redirects to a path below it. */
  readonly publicUrl: string;
  readonly scopes: string;
  /** The claim that contains roles; dots descend into objects. */
  readonly roleClaim: string;
  /** Maps the claim's values to roles. */
  readonly roles: Readonly<Record<string, string>>;
  /** The cookie's key is derived from it. */
  readonly firstToken: string;
}

interface SignedInPerson {
  readonly name: string;
  readonly role: Role;
  /** The page of the console to open. */
  readonly to: string;
}

/**
 * `denied`: refused by the provider or the person; `expired`: started in another browser or too long ago; `no-role`: the claim grants none.
 */
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

  /** Whether browsers reach the console over TLS, so that cookies must be `Secure`. */
  get isSecure(): boolean {
    return this.#options.publicUrl.startsWith("https:");
  }

  /** Sessions are bound to this: changing the provider or client ends them. */
  get bond(): Buffer {
    const { issuer, clientId } = this.#options;
    return createHash("sha256")
      .update(JSON.stringify(["sso", issuer.href, clientId]))
      .digest();
  }

  /** The URL to redirect the browser to, and the cookie to set until it returns. */
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

  /** Cached; retried after a failure. */
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
      // Verifies the ID token's signature even though it comes directly from the provider.
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

/** Only a local path: anything else would be an open redirect. */
function localPath(to: string | undefined): string {
  if (to === undefined || !/^\/(?![/\\])[\x21-\x7e]*$/.test(to) || to.includes("\\")) return "/";
  const base = "http://console.invalid";
  return URL.canParse(to, base) && new URL(to, base).origin === base ? to : "/";
}

/** The highest role granted by the claim. */
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

/** Prefers a verified mail address; anyone could have entered an unverified one. */
function nameOf({ email, email_verified, sub }: Readonly<Record<string, unknown>>): string {
  const name = typeof email === "string" && email_verified === true ? email : String(sub);
  return `sso:${name.replace(/[^\x21-\x7e]/g, "?").slice(0, LONGEST_NAME)}`;
}

/** The library's error code and message; they contain neither authorization codes nor tokens. */
function wordsOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  return [code, message].filter((part) => part !== undefined).join(": ");
}
