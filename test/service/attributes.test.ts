/** Which part of a request becomes which attribute, asked through forward-auth and seen in the counters. */
import { createHash, generateKeyPairSync } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, SignJWT } from "jose";
import type { Rule } from "sluice";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { requestAttributes } from "../../packages/server/src/enforcement/attributes/request-attributes.js";
import { verifiedClaims } from "../../packages/server/src/enforcement/attributes/verified-claims.js";
import { type RunningService, startTestService } from "./running-service.js";

let service: RunningService | undefined;
afterEach(async () => {
  await service?.close();
  service = undefined;
});

/** One rule per attribute: what is left tells how often a value was seen. */
const countBy = (attribute: string): Rule => ({
  id: `by-${attribute}`,
  key: [attribute],
  algorithm: "fixed-window",
  limit: 100,
  window: "1d",
});

async function start(
  mapping: string,
  attributes: readonly string[],
  files: Record<string, string> = {},
): Promise<void> {
  service = await startTestService({
    rules: attributes.map(countBy),
    files: { "attributes.yaml": mapping, ...files },
    settings: { attributes: "attributes.yaml" },
  });
}

async function ask(headers: Record<string, string>): Promise<void> {
  const answer = await fetch(`${service!.http}/v1/forward-auth`, { headers });
  expect(answer.status).toBe(200);
}

async function countOf(attribute: string, value: string): Promise<number> {
  const answer = await fetch(`${service!.http}/v1/peek`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ attributes: { [attribute]: value } }),
  });
  const { remaining } = (await answer.json()) as { remaining: number };
  return 100 - remaining;
}

test("headers, cookies, path templates and routes become attributes; the first source that has a value wins", async () => {
  await start(
    `
attributes:
  user: [{ header: X-User }, { cookie: session }]
  order: { path: "/v1/orders/{id}/**" }
  route: { route: ["/v1/orders/{id}/items", "/v1/orders/{id}/**", "/**"] }
`,
    ["user", "order", "route"],
  );
  await ask({ "x-user": "ann", cookie: "session=from-cookie", "x-forwarded-uri": "/v1/orders/17/items?page=2" });
  await ask({ cookie: 'a=1; session="from-cookie"; b=2', "x-forwarded-uri": "/v1/orders/17/notes" });
  await ask({ "x-user": "", "x-forwarded-uri": "/elsewhere" });
  expect(await countOf("user", "ann")).toBe(1);
  expect(await countOf("user", "from-cookie")).toBe(1);
  expect(await countOf("user", "")).toBe(0);
  expect(await countOf("order", "17")).toBe(2);
  expect(await countOf("route", "/v1/orders/{id}/items")).toBe(1);
  expect(await countOf("route", "/v1/orders/{id}/**")).toBe(1);
  expect(await countOf("route", "/**")).toBe(1);
});

describe("addresses", () => {
  const peer = "127.0.0.1";

  test("X-Forwarded-For from a peer that is not trusted is ignored", async () => {
    await start("trustedProxies: [10.0.0.0/8]\n", ["ip"]);
    await ask({ "x-forwarded-for": "203.0.113.9" });
    expect(await countOf("ip", "203.0.113.9")).toBe(0);
    expect(await countOf("ip", peer)).toBe(1);
  });

  test("without a mapping nobody is trusted", async () => {
    service = await startTestService({ rules: [countBy("ip")] });
    await ask({ "x-forwarded-for": "203.0.113.9" });
    expect(await countOf("ip", peer)).toBe(1);
  });

  test("from a trusted peer it is read from the right, as far as hops are trusted", async () => {
    await start("trustedProxies: [127.0.0.0/8, 10.0.0.0/8]\n", ["ip"]);
    await ask({ "x-forwarded-for": "1.1.1.1, 203.0.113.9, 10.1.2.3" });
    expect(await countOf("ip", "203.0.113.9")).toBe(1);
    expect(await countOf("ip", "1.1.1.1")).toBe(0);
  });

  test("IPv6 clients are counted by /56 unless told otherwise, and mapped IPv4 as IPv4", async () => {
    const facts = (forwarded: string) => ({
      method: "GET",
      target: "/",
      host: "h",
      headers: { "x-forwarded-for": forwarded },
      rawHeaders: [],
      peer: "127.0.0.1",
    });
    const { attributesOf } = requestAttributes({});
    expect((await attributesOf({ ...facts("x"), headers: {}, peer: "2001:db8:1:2345::9" })).ip).toBe(
      "2001:db8:1:2300::",
    );
    expect((await attributesOf({ ...facts("x"), headers: {}, peer: "::ffff:192.0.2.7" })).ip).toBe("192.0.2.7");
    await start("trustedProxies: [loopback]\nipv6Prefix: 64\n", ["ip"]);
    await ask({ "x-forwarded-for": "2001:db8:1:2345:ffff::1" });
    expect(await countOf("ip", "2001:db8:1:2345::")).toBe(1);
  });
});

test("a host is counted by its name: without case, port and the dot at the end; requests without one count together", async () => {
  await start("{}\n", ["host"]);
  for (const host of ["shop.example", "SHOP.example", "shop.example.", "shop.example:8443", "Shop.Example.:80"]) {
    await ask({ "x-forwarded-host": host });
  }
  await ask({ "x-forwarded-host": "[2001:DB8::1]:80" });
  expect(await countOf("host", "shop.example")).toBe(5);
  expect(await countOf("host", "[2001:db8::1]")).toBe(1);
  const { attributesOf } = requestAttributes({});
  const facts = { method: "GET", target: "/", headers: {}, rawHeaders: [], peer: "192.0.2.7" };
  expect((await attributesOf({ ...facts, host: undefined })).host).toBe("unknown");
  expect((await attributesOf({ ...facts, host: "" })).host).toBe("unknown");
});

test("a value over the bound is counted by its digest: each has its own counter, and none escapes", async () => {
  await start("attributes: { user: { header: x-user } }\n", ["user"]);
  const [long, other] = ["a".repeat(2_000), `${"a".repeat(1_999)}b`];
  for (const user of [long, long, other]) await ask({ "x-user": user });
  const digest = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;
  expect([await countOf("user", digest(long)), await countOf("user", digest(other))]).toEqual([2, 1]);
});

test("forward-auth refuses what cannot be judged, with the status that the gateway asked for", async () => {
  await start("attributes: { user: { header: x-user } }\n", ["user"]);
  for (const uri of ["/a%2fb", "/a\\b", "/a%5Cb", "/a%00"]) {
    const question = (query: string) =>
      fetch(`${service!.http}/v1/forward-auth${query}`, { headers: { "x-forwarded-uri": uri } });
    expect((await question("")).status).toBe(400);
    const denied = await question("?deny=403");
    expect([denied.status, ((await denied.json()) as { code: string }).code]).toEqual([403, "invalid-request"]);
  }
});

test("a target with .. must pass as it came and resolved, whichever the gateway passes on", async () => {
  const rules: Rule[] = ["/inside/**", "/outside"].map((path, i) => ({
    ...countBy("method"),
    id: `r${i}`,
    match: { path },
    limit: 1,
  }));
  service = await startTestService({ rules });
  const ask = async (uri: string) =>
    (await fetch(`${service!.http}/v1/forward-auth`, { headers: { "x-forwarded-uri": uri } })).status;
  expect(await ask("/inside/../outside")).toBe(200);
  expect([await ask("/outside"), await ask("/inside/x")]).toEqual([429, 429]);
  expect([await ask("/x/%2e%2e/outside"), await ask("/inside/../free")]).toEqual([429, 429]);
});

test("what one reading was charged is given back if the other is refused", async () => {
  const rules: Rule[] = ["/inside/**", "/outside"].map((path, i) => ({
    ...countBy("method"),
    id: `r${i}`,
    match: { path },
    limit: 1,
  }));
  service = await startTestService({ rules });
  const ask = async (uri: string) =>
    (await fetch(`${service!.http}/v1/forward-auth`, { headers: { "x-forwarded-uri": uri } })).status;
  expect([await ask("/inside/x"), await ask("/inside/../outside"), await ask("/outside")]).toEqual([200, 429, 200]);
});

test("an API key's fields become attributes, and an unknown key none", async () => {
  const sha256 = createHash("sha256").update("the-key").digest("hex");
  await start(
    `
attributes: { tier: { apiKey: tier }, account: { apiKey: account } }
apiKeys: { header: x-api-key, keys: [{ sha256: ${sha256}, tier: gold, account: 7 }] }
`,
    ["tier", "account"],
  );
  await ask({ "x-api-key": "the-key" });
  await ask({ "x-api-key": "another" });
  await ask({});
  expect([await countOf("tier", "gold"), await countOf("account", "7")]).toEqual([1, 1]);
});

describe("JSON Web Tokens", () => {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const pem = publicKey.export({ type: "spki", format: "pem" }).toString();
  const sign = (claims: Record<string, unknown>, { expires = "1h", key = privateKey, kid = "k1" } = {}) =>
    new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid }).setIssuer("me").setExpirationTime(expires).sign(key);
  const bearer = async (token: Promise<string>) => ({ authorization: `Bearer ${await token}` });
  const mapping = (jwt: string) => `attributes: { user: { claim: sub }, plan: { claim: org.plan } }\njwt: ${jwt}\n`;

  test("verified claims become attributes, nested ones by dots", async () => {
    await start(mapping("{ publicKey: key.pem, issuer: me }"), ["user", "plan"], { "key.pem": pem });
    const token = sign({ sub: "ann", org: { plan: "pro" } });
    await ask(await bearer(token));
    await ask(await bearer(token));
    expect([await countOf("user", "ann"), await countOf("plan", "pro")]).toEqual([2, 2]);
  });

  test("a token that does not verify says nothing: another key, expired, another issuer, none, a public key as secret", async () => {
    await start(mapping("{ publicKey: key.pem, issuer: you }"), ["user"], { "key.pem": pem });
    const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    await ask(await bearer(sign({ sub: "eve" })));
    await ask(await bearer(sign({ sub: "eve", iss: "you" }, { key: other })));
    await ask(await bearer(sign({ sub: "eve", iss: "you" }, { expires: "-1s" })));
    const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from('{"sub":"eve","iss":"you"}').toString("base64url")}.`;
    await ask({ authorization: `Bearer ${none}` });
    const confused = await new SignJWT({ sub: "eve", iss: "you" })
      .setProtectedHeader({ alg: "HS256" })
      .sign(Buffer.from(pem));
    await ask({ authorization: `Bearer ${confused}` });
    await ask({ authorization: "Bearer x" });
    expect(await countOf("user", "eve")).toBe(0);
  });

  test("keys may come from a key set, by file and by URL", async () => {
    const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k1", alg: "RS256" }] });
    await start(mapping("{ jwks: keys.json }"), ["user"], { "keys.json": keySet });
    await ask(await bearer(sign({ sub: "from-file" })));
    expect(await countOf("user", "from-file")).toBe(1);
    await service!.close();

    const issuer = createServer((_request, response) =>
      response.setHeader("content-type", "application/json").end(keySet),
    );
    await new Promise<void>((resolve) => issuer.listen(0, "127.0.0.1", resolve));
    await start(mapping(`{ jwks: "http://127.0.0.1:${(issuer.address() as AddressInfo).port}/jwks" }`), ["user"]);
    await ask(await bearer(sign({ sub: "from-url" })));
    expect(await countOf("user", "from-url")).toBe(1);
    issuer.close();
  });

  test.each([
    ["hangs", () => undefined],
    ["answers 503", (response: ServerResponse) => response.writeHead(503).end()],
  ])(
    "while an issuer %s, the keys that it gave last go on verifying, and only the first token asks it",
    async (_, fail) => {
      const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k1", alg: "RS256" }] });
      let fetches = 0;
      const issuer = createServer((_request, response) => {
        if (fetches++ === 0) response.setHeader("content-type", "application/json").end(keySet);
        else fail(response);
      });
      await new Promise<void>((resolve) => issuer.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => {
        vi.useRealTimers();
        issuer.closeAllConnections();
        issuer.close();
      });
      const jwks = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/jwks`;
      const claimsOf = verifiedClaims({ jwks }, String);
      expect((await claimsOf(await sign({ sub: "before" })))?.sub).toBe("before");
      // Keys are fetched anew after ten minutes.
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 660_000 });
      expect((await claimsOf(await sign({ sub: "first" })))?.sub).toBe("first");
      expect((await claimsOf(await sign({ sub: "second" })))?.sub).toBe("second");
      expect(await claimsOf(await sign({ sub: "eve" }, { kid: "unknown" }))).toBeUndefined();
      expect(fetches).toBe(2);
    },
  );
});

test.each([
  ["an unknown field", "attribute: {}", /the file: expected to not have additional properties/],
  ["a source that is a number", "attributes: { user: 5 }", /attributes\.user: expected object, got 5/],
  ["a source that is none", "attributes: { user: { headr: x } }", /attributes\.user/],
  ["a claim without jwt", "attributes: { user: { claim: sub } }", /attributes\.user: a claim needs jwt/],
  ["an API key without keys", "attributes: { tier: { apiKey: tier } }", /attributes\.tier: apiKey needs apiKeys/],
  ["a template without a name", "attributes: { id: { path: /v1 } }", /expected one \{name\}/],
  [
    "a name beside other text",
    "attributes: { id: { path: '/v1/{id}.json' } }",
    /attributes\.id: expected whole segments/,
  ],
  ["a star for a segment", "attributes: { r: { route: ['/v1/{id}', '/v1/*'] } }", /segments.*got "\/v1\/\*"/],
  ["a star in the middle", "attributes: { r: { route: ['/v1/**/items'] } }", /\*\* only as the last one/],
  ["a mistake at an odd name", "attributes: { a/b: 5 }", /a~1b: expected object, got 5/],
  ["an empty secret", "jwt: { secret: empty }", /expected a secret in empty, got an empty file/],
  ["two keys", "jwt: { publicKey: a, secret: b }", /expected one of publicKey, secret and jwks/],
  ["a key that is not there", "jwt: { publicKey: nowhere.pem }", /expected a public key \(PEM\) in nowhere\.pem/],
  ["a proxy that is no address", "trustedProxies: [example.com]", /trustProxy: expected/],
  ["no YAML", "attributes: [", /expected YAML/],
])("a mapping with %s stops the start and says so", async (_what, text, message) => {
  await expect(
    startTestService({ files: { "attributes.yaml": text, empty: "\n" }, settings: { attributes: "attributes.yaml" } }),
  ).rejects.toThrow(message);
});

test("attributes and fields may have any name, also one that every object inherits", async () => {
  const sha256 = createHash("sha256").update("k").digest("hex");
  await start(
    `
attributes:
  __proto__: { header: x-user }
  constructor: { header: x-tenant }
  plan: { apiKey: constructor }
  field: { header: __proto__ }
apiKeys: { keys: [{ sha256: ${sha256} }] }
`,
    ["__proto__", "constructor", "plan", "field"],
  );
  await ask({ "x-user": "ann", "x-tenant": "acme", "x-api-key": "k" });
  await ask({ "x-user": "ann" });
  expect(await countOf("__proto__", "ann")).toBe(2);
  expect(await countOf("constructor", "acme")).toBe(1);
});
