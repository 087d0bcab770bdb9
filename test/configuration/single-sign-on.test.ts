/** Single sign-on against a real provider (oidc-provider) on loopback, and against those who would abuse it. */
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT, UnsecuredJWT } from "jose";
import { Provider } from "oidc-provider";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../harness/free-port.js";
import { type RunningService, startTestService } from "../service/running-service.js";

const ADMIN = "the-admin-token-of-this-test";
const SECRET = "the-secret-of-the-client";
const people: Readonly<Record<string, object>> = {
  ada: { email: "ada@example.org", email_verified: true, roles: ["sluice-editor", "other"] },
  bob: { email: "admin@example.org", email_verified: false, roles: ["sluice-viewer"] },
  eve: { email: "eve@example.org", email_verified: true },
};

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const jwk = { ...privateKey.export({ format: "jwk" }), kid: "k1", use: "sig", alg: "RS256" };

const servers: Server[] = [];
let service: RunningService;
let issuer: string;

beforeAll(async () => {
  const [providerPort, port] = [await freePort(), await freePort()];
  issuer = `http://127.0.0.1:${providerPort}`;
  const publicUrl = `http://127.0.0.1:${port}`;
  const provider = new Provider(issuer, {
    clients: [
      { client_id: "sluice", client_secret: SECRET, redirect_uris: [`${publicUrl}/admin/v1/session/sso/callback`] },
    ],
    jwks: { keys: [jwk] },
    cookies: { keys: ["a-key-for-cookies"] },
    claims: { openid: ["sub", "roles"], email: ["email", "email_verified"] },
    conformIdTokenClaims: false,
    findAccount: (_ctx: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
  });
  const server = createServer(provider.callback());
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(providerPort, "127.0.0.1", resolve));
  service = await startTestService({
    settings: {
      port: String(port),
      "admin-token": ADMIN,
      "public-url": publicUrl,
      "oidc-issuer": issuer,
      "oidc-client-id": "sluice",
      "oidc-client-secret": SECRET,
    },
  });
});
afterAll(async () => {
  await service.close();
  for (const server of servers) server.close().closeAllConnections();
});

/** A browser, as far as redirects and cookies go. */
class Browser {
  readonly #jar = new Map<string, Map<string, string>>();

  async go(url: string, form?: Record<string, string>): Promise<Response> {
    const { origin } = new URL(url);
    const jar = this.#jar.get(origin) ?? new Map<string, string>();
    this.#jar.set(origin, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(url, {
      redirect: "manual",
      headers: { ...(cookie !== "" && { cookie }) },
      ...(form !== undefined && { method: "POST", body: new URLSearchParams(form) }),
    });
    for (const line of answer.headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      const at = pair.indexOf("=");
      const isGone = /max-age=0|expires=thu, 01 jan 1970/i.test(line);
      if (isGone) jar.delete(pair.slice(0, at));
      else jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return answer;
  }

  /** Signs in at the provider; the address of the way back, not yet followed. */
  async signInAt(start: string, person: string): Promise<string> {
    let answer = await this.go(start);
    for (let hop = 0; hop < 12; hop++) {
      const location = answer.headers.get("location");
      if (location === null) throw new Error(`no way on: ${answer.status} ${await answer.text()}`);
      const next = new URL(location, answer.url).href;
      if (next.startsWith(`${service.http}/admin/v1/session/sso/callback`)) return next;
      if (new URL(next).pathname.startsWith("/interaction/")) {
        const page = await (await this.go(next)).text();
        const isLogin = page.includes('name="login"');
        answer = await this.go(
          next,
          isLogin ? { prompt: "login", login: person, password: "x" } : { prompt: "consent" },
        );
      } else answer = await this.go(next);
    }
    throw new Error("too many redirects");
  }

  cookie(name: string): string | undefined {
    return this.#jar.get(service.http)?.get(name);
  }
}

const start = (to?: string): string =>
  `${service.http}/admin/v1/session/sso${to === undefined ? "" : `?to=${encodeURIComponent(to)}`}`;

async function whoIs(browser: Browser) {
  const cookie = `sluice-session=${browser.cookie("sluice-session")}`;
  const answer = await fetch(`${service.http}/admin/v1/session`, { headers: { cookie } });
  return { status: answer.status, body: await answer.json() };
}

test("a person signs in at the provider and has the role of the claim, under a name that no token can have", async () => {
  const browser = new Browser();
  const back = await browser.go(await browser.signInAt(start("/rules?x=1"), "ada"));
  expect(back.status).toBe(303);
  expect(back.headers.get("location")).toBe("/rules?x=1");
  const session = back.headers.getSetCookie().find((line) => line.startsWith("sluice-session="));
  expect(session).toMatch(/HttpOnly.*SameSite=Strict|SameSite=Strict.*HttpOnly/i);
  expect(await whoIs(browser)).toEqual({ status: 200, body: { name: "sso:ada@example.org", role: "editor" } });
  const audit = await fetch(`${service.http}/admin/v1/audit?actor=${encodeURIComponent("sso:ada@example.org")}`, {
    headers: { authorization: `Bearer ${ADMIN}` },
  });
  expect(await audit.json()).toMatchObject({ entries: [{ action: "session.opened" }] });
});

test("an address that is not verified names nobody; without a role of ours nobody comes in", async () => {
  const bob = new Browser();
  await bob.go(await bob.signInAt(start(), "bob"));
  expect(await whoIs(bob)).toMatchObject({ body: { name: "sso:bob", role: "viewer" } });
  const eve = new Browser();
  const refused = await eve.go(await eve.signInAt(start(), "eve"));
  expect(refused.headers.get("location")).toBe("/?sso=no-role");
  expect(eve.cookie("sluice-session")).toBeUndefined();
});

test.each(["https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil.example", "javascript:alert(1)"])(
  "the way on leads to no other site: %s",
  async (to) => {
    const browser = new Browser();
    const back = await browser.go(await browser.signInAt(start(to), "ada"));
    expect(back.headers.get("location")).toBe("/");
  },
);

test("another browser cannot finish a sign-in, a state of one's own choice is refused, and a code works once", async () => {
  const [victim, attacker] = [new Browser(), new Browser()];
  const back = await attacker.signInAt(start(), "ada");
  // Fixation: the attacker's answer in the victim's browser, which began nothing, or began its own.
  expect((await victim.go(back)).headers.get("location")).toBe("/?sso=expired");
  await victim.go(start());
  expect((await victim.go(back)).headers.get("location")).toBe("/?sso=failed");
  expect(victim.cookie("sluice-session")).toBeUndefined();
  const state = attacker.cookie("sluice-sso")!;
  expect((await attacker.go(back)).headers.get("location")).toBe("/");
  // The same code and cookie again, as one who had copied both would send them.
  const again = await fetch(back, { redirect: "manual", headers: { cookie: `sluice-sso=${state}` } });
  expect(again.headers.get("location")).toBe("/?sso=failed");
  const forged = await fetch(back, { redirect: "manual", headers: { cookie: `sluice-sso=${state.slice(0, -2)}AA` } });
  expect(forged.headers.get("location")).toBe("/?sso=expired");
});

test("a person who says no is told so", async () => {
  const browser = new Browser();
  const begun = await browser.go(start());
  const state = new URL(begun.headers.get("location")!).searchParams.get("state");
  const answer = await browser.go(
    `${service.http}/admin/v1/session/sso/callback?error=access_denied&state=${state}&iss=${encodeURIComponent(issuer)}`,
  );
  expect(answer.headers.get("location")).toBe("/?sso=denied");
});

describe("a provider whose ID tokens are wrong", () => {
  let forge: (claims: Record<string, unknown>) => Promise<string>;
  let own: RunningService;
  let nonce = "";
  let base = "";

  beforeAll(async () => {
    const server = createServer(async (request, response) => {
      const send = (body: object) =>
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
      if (request.url === "/.well-known/openid-configuration") {
        return send({
          issuer: base,
          authorization_endpoint: `${base}/auth`,
          token_endpoint: `${base}/token`,
          jwks_uri: `${base}/jwks`,
          response_types_supported: ["code"],
          subject_types_supported: ["public"],
          id_token_signing_alg_values_supported: ["RS256", "none"],
          code_challenge_methods_supported: ["S256"],
        });
      }
      const { d: _d, p: _p, q: _q, dp: _dp, dq: _dq, qi: _qi, ...publicJwk } = jwk as Record<string, unknown>;
      if (request.url === "/jwks") return send({ keys: [publicJwk] });
      const now = Math.floor(Date.now() / 1_000);
      const claims = { iss: base, aud: "sluice", sub: "ada", iat: now, exp: now + 300, nonce, roles: ["sluice-admin"] };
      return send({ access_token: randomUUID(), token_type: "Bearer", id_token: await forge(claims) });
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    own = await startTestService({
      settings: {
        "admin-token": ADMIN,
        "public-url": "http://127.0.0.1:1",
        "oidc-issuer": base,
        "oidc-client-id": "sluice",
        "oidc-client-secret": SECRET,
      },
    });
  });
  afterAll(() => own.close());

  async function attempt(): Promise<string | null> {
    const begun = await fetch(`${own.http}/admin/v1/session/sso`, { redirect: "manual" });
    const asked = new URL(begun.headers.get("location")!).searchParams;
    nonce = asked.get("nonce")!;
    const cookie = begun.headers.getSetCookie()[0]!.split(";")[0]!;
    const back = `${own.http}/admin/v1/session/sso/callback?code=c&state=${asked.get("state")}`;
    const answer = await fetch(back, { redirect: "manual", headers: { cookie } });
    expect(
      answer.headers.getSetCookie().some((line) => line.startsWith("sluice-session=")),
      "a session",
    ).toBe(answer.headers.get("location") === "/");
    return answer.headers.get("location");
  }

  const signed = (claims: Record<string, unknown>, key = privateKey) =>
    new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "k1" }).sign(key);
  const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;

  test("a right one opens a session: the others fail for their own reasons", async () => {
    forge = signed;
    expect(await attempt()).toBe("/");
  });

  test.each<[string, (claims: Record<string, unknown>) => Promise<string>]>([
    ["another audience", (claims) => signed({ ...claims, aud: "somebody-else" })],
    ["another issuer", (claims) => signed({ ...claims, iss: "https://evil.example" })],
    ["expired", (claims) => signed({ ...claims, exp: 1_000 })],
    ["another nonce", (claims) => signed({ ...claims, nonce: "replayed" })],
    ["another key", (claims) => signed(claims, other)],
    ["alg none", async (claims) => new UnsecuredJWT(claims).encode()],
    [
      "alg HS256 with the client's secret",
      (claims) => new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(new TextEncoder().encode(SECRET)),
    ],
  ])("is refused: %s", async (_, how) => {
    forge = how;
    expect(await attempt()).toBe("/?sso=failed");
  });

  afterEach(() => {
    nonce = "";
  });
});
