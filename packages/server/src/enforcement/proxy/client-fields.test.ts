import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import type { RequestAttributes } from "../attributes/request-attributes.js";
import { clientFields } from "./client-fields.js";

const TRUSTED = "10.0.0.1";

function fieldsFor(
  raw: readonly string[],
  { peer = "192.0.2.7", headerNames = ["x-user"], trustedNames = [] as string[], written = {} } = {},
): Map<string, string[]> {
  const headers: Record<string, string> = {};
  for (let i = 0; i < raw.length; i += 2) headers[raw[i]!.toLowerCase()] = raw[i + 1]!;
  const client = { rawHeaders: raw, headers, socket: { remoteAddress: peer } } as unknown as IncomingMessage;
  const attributes = {
    trusts: (address: string) => address === TRUSTED,
    headerNames: new Set(headerNames),
    trustedHeaderNames: new Set(trustedNames),
  };
  const fields = clientFields(attributes as unknown as RequestAttributes, written)(client);
  const byName = new Map<string, string[]>();
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!.toLowerCase();
    byName.set(name, [...(byName.get(name) ?? []), fields[i + 1]!]);
  }
  return byName;
}

test("an untrusted peer cannot spoof client, host or path", () => {
  const names = ["Forwarded", "X-Real-IP", "True-Client-IP", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix"];
  const fields = fieldsFor(["X-Forwarded-For", "1.2.3.4", ...names.flatMap((name) => [name, "evil"])]);
  for (const name of names) expect(fields.has(name.toLowerCase()), name).toBe(false);
  expect(fields.get("x-forwarded-for")).toEqual(["192.0.2.7"]);
});

test("an untrusted peer cannot override the method after the check", () => {
  const names = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_HTTP_Method_Override"];
  const raw = names.flatMap((name) => [name, "DELETE"]);
  expect([...fieldsFor(raw).keys()].filter((name) => name.includes("method"))).toEqual([]);
  expect(fieldsFor(raw, { peer: TRUSTED }).get("x-http-method-override")).toEqual(["DELETE"]);
  // A mapping that uses this header for an attribute bases the decision on it, so it is forwarded.
  expect(fieldsFor(raw, { headerNames: ["x-method-override"] }).get("x-method-override")).toEqual(["DELETE"]);
});

test("a trusted proxy's fields are forwarded, and the peer is appended to its list", () => {
  const fields = fieldsFor(["X-Forwarded-For", "1.2.3.4", "X-Real-IP", "1.2.3.4"], { peer: TRUSTED });
  expect(fields.get("x-forwarded-for")).toEqual([`1.2.3.4, ${TRUSTED}`]);
  expect(fields.get("x-real-ip")).toEqual(["1.2.3.4"]);
});

test("a header that only trusted peers may set is not forwarded from an untrusted peer, in any spelling", () => {
  const options = { headerNames: ["x-criticality"], trustedNames: ["x-criticality"] };
  const raw = ["X-Criticality", "critical", "X_Criticality", "critical"];
  expect([...fieldsFor(raw, options).keys()].filter((name) => name.includes("criticality"))).toEqual([]);
  expect(fieldsFor(raw, { ...options, peer: TRUSTED }).get("x-criticality")).toEqual(["critical"]);
});

test("a field spelled with underscores cannot impersonate one that is rewritten, used by a decision, or frames the body", () => {
  const raw = ["X_Forwarded_For", "1", "X_User", "2", "Content_Length", "3", "X_Free", "4"];
  const fields = fieldsFor(raw);
  expect([...fields.keys()].filter((name) => name.includes("_"))).toEqual(["x_free"]);
});

test("a header with underscores that the mapping names is forwarded", () => {
  expect(fieldsFor(["x_user", "42"], { headerNames: ["x_user", "x-user"] }).get("x_user")).toEqual(["42"]);
});

test("a field set by the proxy replaces the client's, in any spelling", () => {
  const raw = ["Authorization", "Bearer client", "authorization", "Bearer again", "X_Api_Key", "1"];
  const written = { Authorization: "Bearer vendor", "x-api-key": "vendor" };
  const fields = fieldsFor(raw, { written });
  expect(fields.get("authorization")).toEqual(["Bearer vendor"]);
  expect(fields.get("x-api-key")).toEqual(["vendor"]);
  expect(fields.has("x_api_key")).toBe(false);
});

test("Via is appended, X-Forwarded-Host is set, and a body without a length stays chunked", () => {
  const fields = fieldsFor([
    "Host",
    "api.example",
    "Via",
    "1.1 edge",
    "Transfer-Encoding",
    "chunked",
    "Expect",
    "100-continue",
  ]);
  expect(fields.get("via")).toEqual(["1.1 edge, 1.1 sluice"]);
  expect(fields.get("x-forwarded-host")).toEqual(["api.example"]);
  expect(fields.get("x-forwarded-proto")).toEqual(["http"]);
  expect(fields.get("transfer-encoding")).toEqual(["chunked"]);
  expect(fields.has("expect")).toBe(false);
});
